// SPDX-License-Identifier: Apache-2.0
// compare.mjs ENCODE_LINES WORK_FOLDER: the same texts through our tokenizer and through npm's
// tiktoken (installed in the work folder) with K3's pattern, markers and caps. See README.md.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { everyCharacter, makeTexts } from "./texts.mjs";

const [encodeLines, work] = process.argv.slice(2).map((name) => path.resolve(name));
const require = createRequire(path.join(work, "package.json"));
const { Tiktoken } = require("tiktoken");

const HAN = "\\p{Han}";
const UPPER = `[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^${HAN}]]`;
const LOWER = `[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^${HAN}]]`;
const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
const PATTERN = [
  `[${HAN}]+`,
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${CONTRACTION}`,
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${CONTRACTION}`,
  "\\p{N}{1,3}",
  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*",
  "\\s*[\\r\\n]+",
  "\\s+(?!\\S)",
  "\\s+",
].join("|");

// The released names by their place after the ranks.
const NAMED = {
  0: "[BOS]", 1: "[EOS]", 2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>", 5: "<|sep|>",
  6: "[start_header_id]", 7: "[end_header_id]", 9: "[EOT]", 18: "<|media_begin|>",
  19: "<|media_content|>", 20: "<|media_end|>", 21: "<|media_pad|>", 65: "<osagent_mode>",
  254: "[UNK]", 255: "[PAD]",
};
const NOT_SPECIAL = [3, 4, 5];

/** All base64 tokens of o200k_base by rank. Its file is lines of "name first_rank token token ...". */
function o200kTokens() {
  const { bpe_ranks: lines } = require("tiktoken/encoders/o200k_base.json");
  const tokens = [];
  for (const line of lines.split("\n").filter(Boolean)) {
    const [, first, ...rest] = line.split(" ");
    rest.forEach((token, i) => (tokens[Number(first) + i] = token));
  }
  return tokens;
}

const base64 = (bytes) => Buffer.from(bytes).toString("base64");

/**
 * Tokens of two bytes, all pairs of these bytes that are not in `known`. Where pieces end shows in
 * the ids only if some token could cross the end; with pairs one almost always could.
 */
function pairTokens(bytes, known) {
  const isKnown = new Set(known);
  const pairs = bytes.flatMap((first) => bytes.map((second) => base64([first, second])));
  return pairs.filter((token) => !isKnown.has(token));
}

/** The single bytes and all pairs, the pairs in an order without pattern. */
function pairVocab() {
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  const singles = bytes.map((byte) => base64([byte]));
  const pairs = pairTokens(bytes, []);
  return [...singles, ...pairs.map((_, i) => pairs[(i * 40503) % pairs.length])];
}

/** The first ranks of o200k, and pairs of bytes of characters that the pattern tells apart. */
function smallVocab(tokens) {
  const first = tokens.slice(0, 3000);
  const bytes = new Set(Buffer.from("ABSabs'ʰ\u0301אǅÉſ中〆 !1\n\r\u0085"));
  return [...first, ...pairTokens([...bytes], first)];
}

/** tiktoken.model and tokenizer_config.json of a vocabulary, written to `folder` as `name`. */
function writeVocab(tokens, folder, name) {
  const model = path.join(folder, `${name}.model`);
  const config = path.join(folder, `${name}_config.json`);
  writeFileSync(model, tokens.map((token, rank) => `${token} ${rank}\n`).join(""));
  const entries = Object.entries(NAMED).map(([slot, content]) => [
    String(tokens.length + Number(slot)),
    { content, special: !NOT_SPECIAL.includes(Number(slot)) },
  ]);
  const decoder = Object.fromEntries(entries);
  writeFileSync(config, `${JSON.stringify({ added_tokens_decoder: decoder }, null, 1)}\n`);
  return { model, config };
}

function makeTiktoken(tokens) {
  const specials = {};
  for (let slot = 0; slot < 256; slot++) {
    const id = tokens.length + slot;
    specials[NAMED[slot] ?? `<|reserved_token_${id}|>`] = id;
  }
  return { encoder: new Tiktoken(`! 0 ${tokens.join(" ")}`, specials, PATTERN), specials };
}

// The caps, in the words of the released code; JavaScript indexes UTF-16, so by code points.
const CHUNK_CHARS = 400000;
const RUN_CHARS = 25000;
const isPythonSpace = (c) => /^[\p{White_Space}\x1c-\x1f]$/u.test(c);

function* capped(text) {
  const chars = Array.from(text);
  for (let at = 0; at < chars.length; at += CHUNK_CHARS) {
    yield* runs(chars.slice(at, at + CHUNK_CHARS));
  }
}

function* runs(chars) {
  let start = 0;
  let length = 0;
  let isSpace = null;
  for (let i = 0; i < chars.length; i++) {
    const now = isPythonSpace(chars[i]);
    length = now === isSpace ? length + 1 : 1;
    isSpace = now;
    if (length > RUN_CHARS) {
      yield chars.slice(start, i).join("");
      start = i;
      length = 1;
    }
  }
  yield chars.slice(start).join("");
}

function theirIds(encoder, { text, markers }) {
  const parts = text.length <= RUN_CHARS ? [text] : [...capped(text)];
  return parts.flatMap((part) =>
    Array.from(markers ? encoder.encode(part, "all", []) : encoder.encode(part, [], [])));
}

function ourIds({ model, config }, requests) {
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const options = { input, maxBuffer: 2 ** 30, stdio: ["pipe", "pipe", "inherit"] };
  const { status, stdout, error } = spawnSync(encodeLines, [model, config], options);
  if (error || status !== 0) {
    throw error ?? new Error(`encode_lines: exit status ${status}`);
  }
  return stdout.toString().trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** Both modes of every text; returns the requests with tiktoken's ids. */
function compare(name, tokens, folder, makeTextsWith) {
  const files = writeVocab(tokens, folder, name);
  const { encoder, specials } = makeTiktoken(tokens);
  const texts = makeTextsWith(Object.keys(specials));
  const requests = texts.flatMap((text) => [true, false].map((markers) => ({ text, markers })));
  const ours = ourIds(files, requests);
  const answers = requests.map((request) => ({ ...request, ids: theirIds(encoder, request) }));
  encoder.free();
  const wrong = answers.filter(({ ids }, i) => JSON.stringify(ids) !== JSON.stringify(ours[i]));
  for (const { text, markers, ids } of wrong.slice(0, 10)) {
    const our = ours[answers.findIndex((a) => a.text === text && a.markers === markers)];
    console.log(`different: ${JSON.stringify(text).slice(0, 200)} markers ${markers}`);
    console.log(`  tiktoken ${ids.slice(0, 40)}\n  ours     ${our.slice(0, 40)}`);
  }
  console.log(`${name}: ${texts.length} texts, ${wrong.length} of ${answers.length} differ`);
  return { answers, isEqual: wrong.length === 0 };
}

/** Short texts; both modes of those where they differ. */
function writeGolden(answers) {
  const plainIds = new Map();
  for (const { text, markers, ids } of answers) {
    if (!markers) {
      plainIds.set(text, String(ids));
    }
  }
  const kept = answers.filter(({ text, markers, ids }) =>
    text.length < 250 && (!markers || plainIds.get(text) !== String(ids)));
  const lines = kept.map((answer) => `${JSON.stringify(answer)}\n`);
  writeFileSync(path.join(golden, "tokenizer_small.jsonl"), lines.join(""));
}

const count = Number(process.env.K3_TIKTOKEN_COUNT ?? 12000);
const seed = Number(process.env.K3_TIKTOKEN_SEED ?? 1);
const tokens = o200kTokens();

const golden = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../golden");
const isUpdating = process.env.K3_UPDATE_GOLDEN === "1";
const small = compare("tokenizer_small", smallVocab(tokens), isUpdating ? golden : work,
  (markers) => makeTexts(350, 1, markers));
if (isUpdating && small.isEqual) {
  writeGolden(small.answers);
}
const pairs = compare("pairs", pairVocab(), work,
  (markers) => [...makeTexts(count, seed, markers), ...everyCharacter()]);
const full = compare("o200k", tokens, work, (markers) => makeTexts(count, seed, markers));
process.exit(small.isEqual && pairs.isEqual && full.isEqual ? 0 : 1);
