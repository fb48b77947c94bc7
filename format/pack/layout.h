/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_LAYOUT_H
#define K3_FORMAT_PACK_LAYOUT_H

#include <stdint.h>

/* The constants of docs/format.md, in its order. */

#define K3_INDEX_NAME   "k3.index"
#define K3_TRUNK_NAME   "k3.trunk"
#define K3_EXPERTS_NAME "k3.experts"

/* 2 Maxima */
#define K3_SECTIONS_MAX         32U
#define K3_SECTION_RAW_MAX      (UINT64_C(64) << 20)
#define K3_SECTION_RAW_MAX_BULK (UINT64_C(1) << 30) /* digests and sources */
#define K3_TAIL_MAX             (UINT64_C(4) << 30) /* all sections of one file */

/* 3 Superblock */
#define K3_SUPERBLOCK_BYTES  4096U
#define K3_VERSION_MAJOR     1U
#define K3_VERSION_MINOR     0U
#define K3_FEATURES_INCOMPAT 0U /* the bits that this build knows */
#define K3_WRITER_BYTES      32U
#define K3_DATA_OFFSET       (UINT64_C(2) << 20)

enum k3_file_kind { K3_FILE_INDEX = 1, K3_FILE_TRUNK = 2, K3_FILE_EXPERTS = 3 };

/* 4 Section table */
#define K3_SECTION_ENTRY_BYTES 64U
#define K3_SECTION_ALIGN       64U
#define K3_SECTION_ZSTD        1U

/* 5 Sections */
enum k3_section_kind {
    K3_SECTION_MODEL_SPEC = 1,
    K3_SECTION_TRUNK_EXTENTS = 2,
    K3_SECTION_TRUNK_TENSORS = 3,
    K3_SECTION_TRUNK_DIGESTS = 4,
    K3_SECTION_EXPERT_LAYOUT = 5,
    K3_SECTION_EXPERT_DIGESTS = 6,
    K3_SECTION_FILES = 7,
    K3_SECTION_SHARDS = 8,
    K3_SECTION_TRUNK_SOURCES = 9,
    K3_SECTION_EXPERT_SOURCES = 10
};
#define K3_SECTION_KINDS        10U
#define K3_SECTION_CONTENT_LAST K3_SECTION_FILES /* kinds 1..7 make the pack id */

/* 7 Trunk */
#define K3_TOP_LEVEL          UINT32_MAX
#define K3_TRUNK_EXTENT_BYTES 32U /* of a table entry */
#define K3_TRUNK_TENSOR_BYTES 64U /* of a table entry */
#define K3_TRUNK_EXTENT_ALIGN (UINT64_C(2) << 20)
#define K3_TRUNK_BLOCK_BYTES  (UINT64_C(8) << 20)
#define K3_MATRIX_ALIGN       4096U
#define K3_A_LOG_MAX          65536U

enum k3_dtype { K3_DTYPE_BF16 = 1, K3_DTYPE_F32 = 2 };

enum k3_encoding {
    K3_ENCODING_F32 = 1,
    K3_ENCODING_TAPS = 2,
    K3_ENCODING_B16 = 3,
    K3_ENCODING_ROWS = 4
};

/* 8 Experts */
#define K3_EXPERT_LAYOUT_BYTES 64U
#define K3_EXPERT_ALIGN        (UINT64_C(2) << 20)
#define K3_EXPERT_ALIGN_SMALL  (UINT64_C(64) << 10)
#define K3_EXPERT_SMALL_BELOW  (UINT64_C(1) << 20)
#define K3_M4_SUPERBLOCK_BYTES 1088U
#define K3_EXPERT_PARTS        6U

/* 9 Provenance */
#define K3_EXPERT_SOURCE_BYTES 40U

/* 11 Temporary files */
#define K3_PARTIAL_SUFFIX ".partial"
#define K3_JOURNAL_NAME   "k3.journal"

_Static_assert(K3_TRUNK_BLOCK_BYTES % K3_TRUNK_EXTENT_ALIGN == 0, "blocks cover whole folios");

#endif
