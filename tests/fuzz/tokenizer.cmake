# SPDX-License-Identifier: Apache-2.0
k3_fuzz_target(tiktoken LINK k3_vocab_fixture)
k3_fuzz_target(tokenizer LINK k3_tokenizer k3_vocab_fixture)
