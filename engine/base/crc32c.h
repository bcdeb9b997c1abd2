/** CRC-32C (Castagnoli), the checksum of pages and log blocks; isa-l picks the fastest code. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include "base/types.h"

/** crc32c("123456789", 9) == 0xE3069283. */
uint32_t crc32c(const byte *buf, size_t len_bytes);

#endif
