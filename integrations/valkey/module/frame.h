/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The header of each message of a connection: the position of its first byte, 8 bytes, big-endian.
 * The highest bit says that the stream ends there (README.md, "Messages of a connection"). */
#ifndef FRAME_H
#define FRAME_H

#include <stdint.h>

#define FRAME_HEADER 8
#define FRAME_END (UINT64_C(1) << 63)

static inline uint64_t frame_position(const uint8_t *header) {
    uint64_t position = 0;
    for (int i = 0; i < FRAME_HEADER; i++) position = position << 8 | header[i];
    return position;
}

static inline void frame_write(uint8_t *header, uint64_t position) {
    for (int i = FRAME_HEADER - 1; i >= 0; i--, position >>= 8) header[i] = position & 0xff;
}

#endif
