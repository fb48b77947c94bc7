/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/text_chunk.h"

#include <stdlib.h>

#include "format/base/assert.h"
#include "runtime/tokenizer/char_class.h"
#include "runtime/tokenizer/utf8.h"

enum k3_code k3_text_chunk_init(struct k3_text_chunk *chunk, size_t chars_max, struct k3_error *err)
{
    k3_assert(chars_max >= 1 && chars_max < (size_t)1 << 30);
    *chunk = (struct k3_text_chunk){.chars_max = chars_max};
    chunk->bytes = malloc(chars_max * K3_UTF8_CHAR_BYTES_MAX);
    chunk->starts = malloc((chars_max + 1) * sizeof *chunk->starts);
    chunk->classes = malloc(chars_max);
    if (!chunk->bytes || !chunk->starts || !chunk->classes) {
        k3_text_chunk_done(chunk);
        return k3_fail_no_memory(err, "text to encode");
    }
    chunk->starts[0] = 0;
    return K3_OK;
}

void k3_text_chunk_done(struct k3_text_chunk *chunk)
{
    free(chunk->bytes);
    free(chunk->starts);
    free(chunk->classes);
    *chunk = (struct k3_text_chunk){0};
}

size_t k3_text_chunk_fill(struct k3_text_chunk *chunk, const uint8_t *text, size_t len)
{
    size_t taken = 0;
    size_t count = 0;
    while (taken < len && count < chunk->chars_max) {
        const struct k3_utf8_step step = k3_utf8_decode(text + taken, len - taken);
        const uint32_t start = chunk->starts[count];
        chunk->classes[count] = k3_char_classes(step.code_point);
        count++;
        chunk->starts[count] =
            start + (uint32_t)k3_utf8_encode(step.code_point, chunk->bytes + start);
        taken += step.len;
    }
    chunk->count = count;
    return taken;
}

size_t k3_text_chunk_run_end(const struct k3_text_chunk *chunk, size_t from, size_t run_chars)
{
    size_t run = 0;
    int run_class = -1;
    for (size_t i = from; i < chunk->count; i++) {
        const int class = chunk->classes[i] & K3_CHAR_PY_SPACE;
        run = class == run_class ? run + 1 : 1;
        run_class = class;
        if (run > run_chars) {
            return i;
        }
    }
    return chunk->count;
}
