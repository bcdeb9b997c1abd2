/** Requests of ioctl that reserve space in a file, punch holes into it, or zero a range of it, as
fallocate does. Of XFS, which other file systems took over: no header that is always there has
them. */
#ifndef FAULTS_SPACE_H
#define FAULTS_SPACE_H

enum {
    RESVSP = 0x40305828,
    UNRESVSP = 0x40305829,
    RESVSP64 = 0x4030582a,
    UNRESVSP64 = 0x4030582b,
    ZERO_RANGE = 0x40305839
};

#endif
