# SPDX-License-Identifier: Apache-2.0
# Seed corpora were made by `pack_write_fuzz_seeds tests/fuzz/corpus` (tests/unit/format/pack).
k3_fuzz_target(pack_sections LINK k3_pack_fixture)
k3_fuzz_target(index LINK k3_pack_fixture)
