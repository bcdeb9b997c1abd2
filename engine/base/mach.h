/** Big-endian loads and stores of fixed width: the only way that numbers reach a disk format. */
#ifndef BASE_MACH_H
#define BASE_MACH_H

#include "base/types.h"

static inline void mach_write_1(byte *b, uint32_t v)
{
    b[0] = (byte)v;
}

static inline void mach_write_2(byte *b, uint32_t v)
{
    b[0] = (byte)(v >> 8);
    b[1] = (byte)v;
}

static inline void mach_write_4(byte *b, uint32_t v)
{
    mach_write_2(b, v >> 16);
    mach_write_2(b + 2, v);
}

static inline void mach_write_6(byte *b, uint64_t v)
{
    mach_write_2(b, (uint32_t)(v >> 32));
    mach_write_4(b + 2, (uint32_t)v);
}

static inline void mach_write_7(byte *b, uint64_t v)
{
    mach_write_1(b, (uint32_t)(v >> 48));
    mach_write_6(b + 1, v);
}

static inline void mach_write_8(byte *b, uint64_t v)
{
    mach_write_4(b, (uint32_t)(v >> 32));
    mach_write_4(b + 4, (uint32_t)v);
}

static inline uint32_t mach_read_1(const byte *b)
{
    return b[0];
}

static inline uint32_t mach_read_2(const byte *b)
{
    return (uint32_t)b[0] << 8 | b[1];
}

static inline uint32_t mach_read_4(const byte *b)
{
    return mach_read_2(b) << 16 | mach_read_2(b + 2);
}

static inline uint64_t mach_read_6(const byte *b)
{
    return (uint64_t)mach_read_2(b) << 32 | mach_read_4(b + 2);
}

static inline uint64_t mach_read_7(const byte *b)
{
    return (uint64_t)b[0] << 48 | mach_read_6(b + 1);
}

static inline uint64_t mach_read_8(const byte *b)
{
    return (uint64_t)mach_read_4(b) << 32 | mach_read_4(b + 4);
}

#endif
