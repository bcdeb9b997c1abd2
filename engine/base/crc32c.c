/* CRC-32C. Lowest layer; the only user of isa-l.

1. The value is the common one (reflected, register preset to all ones, result inverted): isa-l's
   crc32_iscsi leaves both steps to its caller. */
#include "base/crc32c.h"

#include <isa-l/crc.h>

#define CHUNK_BYTES_MAX ((size_t)1 << 30) /* isa-l takes an int */

uint32_t crc32c(const byte *buf, size_t len_bytes)
{
    uint32_t crc = 0xFFFFFFFFU;

    while (len_bytes != 0) {
        size_t n = len_bytes < CHUNK_BYTES_MAX ? len_bytes : CHUNK_BYTES_MAX;

        /* isa-l only reads, but its prototype lacks the const. */
        crc = crc32_iscsi((byte *)(uintptr_t)buf, (int)n, crc);
        buf += n;
        len_bytes -= n;
    }
    return ~crc;
}
