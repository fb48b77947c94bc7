/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/pretokenize.h"

#include <stdbool.h>

#include "format/base/assert.h"
#include "runtime/tokenizer/char_class.h"

/* The pattern's alternatives, in its order; each is a function that returns the end of its match,
 * or NO_MATCH (= from, since no alternative matches nothing).
 *
 *   [\p{Han}]+                                                                        han
 *   [^\r\n\p{L}\p{N}]?[UPPER]*[LOWER]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?                   word
 *   [^\r\n\p{L}\p{N}]?[UPPER]+[LOWER]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?                   capitals
 *   \p{N}{1,3}                                                                        number
 *    ?[^\s\p{L}\p{N}]+[\r\n]*                                                         symbols
 *   \s*[\r\n]+  |  \s+(?!\S)  |  \s+                                                  space */

struct text {
    const struct k3_text_chunk *chunk;
    size_t end;
};

static bool is(const struct text *text, size_t at, unsigned classes)
{
    return at < text->end && (text->chunk->classes[at] & classes) != 0;
}

/* The byte a character starts with; a whole character where it is ASCII. 0 past the end. */
static uint8_t byte_at(const struct text *text, size_t at)
{
    return at < text->end ? text->chunk->bytes[text->chunk->starts[at]] : 0;
}

static size_t run_end(const struct text *text, size_t at, unsigned classes)
{
    while (is(text, at, classes)) {
        at++;
    }
    return at;
}

static size_t match_han(const struct text *text, size_t from)
{
    return run_end(text, from, K3_CHAR_HAN);
}

/* The letter at `at` in lower case by simple case folding, which knows one letter beyond ASCII that
 * the contractions have: U+017F, the long s. 0 for what folds to no ASCII letter. */
static uint8_t folded_letter(const struct text *text, size_t at)
{
    const uint8_t byte = byte_at(text, at);
    if (byte >= 'A' && byte <= 'Z') {
        return (uint8_t)(byte - 'A' + 'a');
    }
    if (byte == 0xC5 && text->chunk->bytes[text->chunk->starts[at] + 1] == 0xBF) {
        return 's';
    }
    return byte < 0x80 ? byte : 0;
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)? */
static size_t skip_contraction(const struct text *text, size_t at)
{
    if (byte_at(text, at) != '\'') {
        return at;
    }
    const uint8_t first = folded_letter(text, at + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') {
        return at + 2;
    }
    const uint8_t second = folded_letter(text, at + 2);
    const bool is_pair =
        ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
    return is_pair ? at + 3 : at;
}

/* [UPPER]*[LOWER]+ from `start`: UPPER takes its whole run and gives back as little as LOWER needs.
 * NO_MATCH is `start`. */
static size_t match_lower_ended(const struct text *text, size_t start)
{
    const size_t upper_end = run_end(text, start, K3_CHAR_UPPER);
    for (size_t split = upper_end + 1; split-- > start;) {
        if (is(text, split, K3_CHAR_LOWER)) {
            return run_end(text, split, K3_CHAR_LOWER);
        }
    }
    return start;
}

/* [UPPER]+[LOWER]* from `start`: LOWER has nothing to give back to. */
static size_t match_upper_begun(const struct text *text, size_t start)
{
    const size_t upper_end = run_end(text, start, K3_CHAR_UPPER);
    return upper_end == start ? start : run_end(text, upper_end, K3_CHAR_LOWER);
}

/* One of the two word alternatives: first with one leading character that is no letter, number or
 * line break, then without. A combining mark can be that character too. */
static size_t match_word(const struct text *text, size_t from,
                         size_t (*match_letters)(const struct text *, size_t))
{
    if (!is(text, from, K3_CHAR_LETTER | K3_CHAR_NUMBER | K3_CHAR_NEWLINE)) {
        const size_t end = match_letters(text, from + 1);
        if (end > from + 1) {
            return skip_contraction(text, end);
        }
    }
    const size_t end = match_letters(text, from);
    return end > from ? skip_contraction(text, end) : from;
}

static size_t match_number(const struct text *text, size_t from)
{
    size_t at = from;
    while (at < from + 3 && is(text, at, K3_CHAR_NUMBER)) {
        at++;
    }
    return at;
}

static size_t match_symbols(const struct text *text, size_t from)
{
    const size_t start = byte_at(text, from) == ' ' ? from + 1 : from;
    size_t at = start;
    while (at < text->end && !is(text, at, K3_CHAR_SPACE | K3_CHAR_LETTER | K3_CHAR_NUMBER)) {
        at++;
    }
    return at == start ? from : run_end(text, at, K3_CHAR_NEWLINE);
}

/* Up to and with the last line break of the run; without one the whole run at the end of the text,
 * else all but its last character, which belongs to what follows; a single one stands alone. */
static size_t match_space(const struct text *text, size_t from)
{
    const size_t run = run_end(text, from, K3_CHAR_SPACE);
    for (size_t at = run; at > from; at--) {
        if (is(text, at - 1, K3_CHAR_NEWLINE)) {
            return at;
        }
    }
    return run == text->end || run <= from + 1 ? run : run - 1;
}

static size_t match_any(const struct text *text, size_t from)
{
    size_t end = match_han(text, from);
    end = end > from ? end : match_word(text, from, match_lower_ended);
    end = end > from ? end : match_word(text, from, match_upper_begun);
    end = end > from ? end : match_number(text, from);
    end = end > from ? end : match_symbols(text, from);
    return end > from ? end : match_space(text, from);
}

size_t k3_pretokenize_next(const struct k3_text_chunk *chunk, size_t from, size_t end)
{
    k3_assert(from < end && end <= chunk->count);
    const struct text text = {chunk, end};
    const size_t piece_end = match_any(&text, from);
    k3_assert(piece_end > from && piece_end <= end);
    return piece_end;
}
