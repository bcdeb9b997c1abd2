/** Packets with descriptors, from the owner of a fork server. */
#ifndef FAULTS_PACKET_H
#define FAULTS_PACKET_H

#include <sys/types.h>

#define PACKET_FDS_MAX 8U

/** What came with a packet. */
typedef struct packet {
    ssize_t bytes; /**< that were read; 0 or less: the owner has closed its end */
    int fds[PACKET_FDS_MAX];
    unsigned n_fds;
    int is_cut; /**< it was longer than its place, or had more descriptors */
} packet_t;

/** Waits for the next one; its descriptors are closed by exec. */
packet_t packet_receive(int fd, void *place, size_t size);

#endif
