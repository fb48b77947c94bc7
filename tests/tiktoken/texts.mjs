// SPDX-License-Identifier: Apache-2.0
// Texts on which tokenizers are likely to differ. The same seed gives the same texts.

/** mulberry32: numbers in [0, 1). */
function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// What the pattern tells apart, several of each.
const CLASSES = [
  "abcxyzéßſªº", "ABCXYZÉÀΩЖ", "ǅǈᾈ", "ʰʲːˈㆍー々〻", "אبあア〆한ไꀀ", "\u0301\u0300\u0903\u20dd\ufe0f",
  "中文国龍⺀⼀㐀﨎𠀀🨁", "〇〡〹", "0123456789", "٣४Ⅷ½²①", "!?.,;:-_/\\|@#$%^&*()[]{}<>=+~`\"",
  "'", "'’ʼ", " ", "\t\v\f", "\r\n", "\n", "\u0085\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000",
  "\u0000\u0007\u001b\u001c\u001f\u007f", "\u200b\u200d\ufeff\u180e\u2060", "😀🚀👩🏽❤", "\ufffd\ue000",
];
const CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'M",
  "'lL", "'D", "'ſ", "'l", "'r", "'x", "’s"];
const WORDS = ("the quick Brown FOX iPhone helloWorld XMLHttpRequest naïve café Ångström STRASSE ſtraße " +
  "Привет мир ПРИВЕТ שלום مرحبا สวัสดี こんにちは 日本語のテキスト 你好世界 한국어 नमस्ते 3.14159 1234567 0x7f " +
  "don't they're WE'LL I'd def return {} => != && // <tag> &amp; \"quoted\" https://example.com/a?b=c " +
  "e\u0301te\u0301 👨\u200d👩\u200d👧 #hash @user snake_case kebab-case __init__ 人々 〆切 二〇二六 ﬁ ½ Ⅷ").split(" ");
const GLUE = [" ", " ", " ", "", "\n", "  ", "\t", " \n ", "\r\n", "\u00a0", "\u3000", ", ", ". "];

// Blocks and stragglers that Unicode 15.1, 16 and 17 added letters, marks or numbers to. tiktoken knows
// them or not, utf8proc knows them or not: what is unassigned is a symbol. (New ideographs are letters
// to us in any case, see char_class.h, but not to a tiktoken that is older than they are.)
const NEWER = [
  [0x88f, 0x88f], [0x897, 0x897], [0xc5c, 0xc5c], [0xcdc, 0xcdc], [0x1acf, 0x1aff], [0x1c89, 0x1c8f],
  [0xa7cb, 0xa7cf], [0xa7d2, 0xa7d4], [0xa7da, 0xa7f1], [0x105c0, 0x105ff], [0x10940, 0x1095f],
  [0x10d40, 0x10d8f], [0x10ec2, 0x10eff], [0x11380, 0x113ff], [0x116d0, 0x116ff], [0x11b60, 0x11b7f],
  [0x11bc0, 0x11bff], [0x11db0, 0x11def], [0x11f5a, 0x11f5a], [0x13460, 0x143ff], [0x16100, 0x1613f],
  [0x16d40, 0x16d7f], [0x16ea0, 0x16edf], [0x16ff2, 0x16fff], [0x187f8, 0x187ff], [0x18cff, 0x18cff],
  [0x18d09, 0x18dff], [0x1cc00, 0x1ccff], [0x1e5d0, 0x1e5ff], [0x1e6c0, 0x1e6ff], [0x2b73a, 0x2b73f],
  [0x2b81e, 0x2b81f], [0x2cea2, 0x2ceaf], [0x2ebf0, 0x2ee5d], [0x323b0, 0x3347f],
];

/** Scalar values that all sides must agree on. */
function isComparable(c) {
  return !(c >= 0xd800 && c < 0xe000) && !NEWER.some(([first, last]) => c >= first && c <= last) &&
    !/^\p{Cn}$/u.test(String.fromCodePoint(c));
}

/** Every comparable character between others of each kind: what class it is of decides the pieces. */
export function everyCharacter() {
  const texts = [];
  for (let c = 0, parts = []; c < 0x110000; c++) {
    if (isComparable(c) && !/^\p{Co}$/u.test(String.fromCodePoint(c))) {
      const char = String.fromCodePoint(c);
      parts.push(`a${char}A1${char}${char} ${char}\n!${char}b!${char}A${char}1234`);
    }
    if (parts.length === 32 || c === 0x10ffff) {
      texts.push(parts.join(""));
      parts = [];
    }
  }
  return texts;
}

function makeKinds(random, markers) {
  const below = (limit) => Math.floor(random() * limit);
  const pick = (list) => list[below(list.length)];
  const repeat = (limit, make) => Array.from({ length: 1 + below(limit) }, make).join("");
  const classChar = () => pick(Array.from(pick(CLASSES)));
  const anyChar = (limit) => {
    for (;;) {
      const c = below(limit);
      if (isComparable(c)) {
        return String.fromCodePoint(c);
      }
    }
  };
  const word = () => pick(WORDS) + (random() < 0.2 ? pick(CONTRACTIONS) : "");
  const bit = () => pick([classChar, classChar, word, () => pick(CONTRACTIONS)])();
  return [
    () => repeat(40, classChar),
    () => repeat(6, () => classChar().repeat(1 + below(8))),
    () => { // few classes, long: what backtracking and white space rules see
      const few = [classChar(), classChar(), classChar()];
      return repeat(60, () => pick(few));
    },
    () => repeat(14, () => pick(Array.from("ABÉǅʰ\u0301אabſsS'' !1"))), // backtracking, contractions
    () => repeat(30, () => word() + pick(GLUE)),
    () => repeat(30, bit),
    () => repeat(30, () => anyChar(0x250)),
    () => repeat(30, () => anyChar(0x3200)),
    () => repeat(20, () => anyChar(0x10000)),
    () => repeat(20, () => anyChar(0x110000)),
    () => repeat(8, () => pick([word, classChar, () => pick(markers)])()),
    () => repeat(8, () => { // markers that are cut or altered
      const marker = pick(markers);
      const at = below(marker.length);
      return pick([marker, marker.slice(0, at), marker.slice(at), marker.toUpperCase()]);
    }),
    () => classChar().repeat(1 + below(300)),
    () => repeat(12, () => pick([" ", "\n", "\t", "\r\n", "\u00a0", "\u2028"]).repeat(below(5)) + bit()),
  ];
}

/** Long ones, for the caps. tiktoken merges a piece in quadratic time, so pieces stay short. */
function longTexts() {
  return [
    "1".repeat(60000), "a1".repeat(20000) + " end", "word ".repeat(90000), " ".repeat(30000) + "end",
    "x\u0085\u001c ".repeat(10000), "中1".repeat(13000), "\u001c".repeat(100) + " ".repeat(25000) + "!",
    "😀 ".repeat(200001) + "<|open|>", "A.".repeat(12499) + "<|open|>x<|sep|>",
  ];
}

/** `count` texts, plus the edge cases; markers are the spellings to strew in. */
export function makeTexts(count, seed, markers) {
  const random = makeRandom(seed);
  const kinds = makeKinds(random, markers);
  const texts = ["", " ", "\n", ...markers.slice(0, 8), ...WORDS, ...CONTRACTIONS, ...longTexts()];
  for (let i = 0; i < count; i++) {
    texts.push(kinds[i % kinds.length]());
  }
  return texts;
}
