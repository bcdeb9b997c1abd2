/** The trace file of the preload library: what an unmodified program did to its files, in order.

Written by libtornpage_preload.so through a shared mapping, so that it survives SIGKILL; read by the
harness. Little-endian, records 8-byte aligned. faults/README.md tells the same as prose.

    file header (64 bytes)
    offset size  meaning
      0     8    magic "TPTRACE2"
      8     8    committed length in bytes of header and complete records (release store per record)
     16     4    TP_TRACE_* flags
     20     4    pid of the first process that was recorded; 0 until its first event
     24     8    number of events
     32     8    offset in the file of the calls under way; 0: none are kept
     40    24    zero

    record (64 bytes, then the payload, zero padded to a multiple of 8)
      0     4    total length
      4     2    TP_OP_* kind
      6     2    flags, per kind
      8     8    event number, from 1: the ticket of the call's end
     16     4    file id, 0 = none
     20     4    thread index, from 0 in order of first appearance
     24     8    offset
     32     8    length
     40     8    result: 0 or a byte count, or -errno
     48     8    XXH3_64bits (seed 0) of the data of a write, else 0
     56     8    the ticket of the call's begin: number of the last event that had ended by then
     64          payload

    call under way (64 bytes, TP_TRACE_CALLS of them): a write that has begun and that is not
    recorded yet. A thread has a place of its own, as long as there are no more of them than places.
      0     4    file id, 0 = none; stored last, and 0 again when the record is complete
      4     4    zero
      8     8    offset
     16     8    length; all ones: the whole file, its size too, may change
     24    40    zero

What is killed in the middle of a write may have written it, or a part of it, and leaves no record:
by these places the files can still be held against the stream.

Calls of several threads and processes overlap: B began after A had ended if and only if B's begin
is not less than A's event number.

The log of call stacks, beside the trace: the same header and records, with the magic "TPSTACK1"
and these kinds. Records have numbers of their own, from 1, by which they name each other.

    kind        offset            length               payload
    1 MODULE    0                 bytes of build id    build id, path
    2 FRAMES    bytes of text     number of frames     frames from the innermost on, text
    3 OF        number of event   number of FRAMES     -
    4 NOTE      number of event   number of FRAMES     text of tp_stack_note

Each operation of the trace, but for marks, has an OF with its thread, behind the records that it
needs. Its result is the monotonic time in nanoseconds at which the call began, its hash that at
which it had ended: for people, no verdict comes from them. A NOTE is what the program itself says
about a step that is no operation, after the event. A frame is 16 bytes: number of its
MODULE, 0 = none; address of the instruction that called, as the file of the module has it. The
text is what an interpreter says of its own stack.

No record of the trace holds a time, a pid, a descriptor number or an address: two runs of a
deterministic program give the same bytes but for the pid in the header. So does the log of call
stacks, but for the times. */
#ifndef TORNPAGE_FAULTS_TRACE_H
#define TORNPAGE_FAULTS_TRACE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TP_TRACE_MAGIC "TPTRACE2"
#define TP_STACKS_MAGIC "TPSTACK1"
#define TP_STACK_FRAMES_MAX 64u
#define TP_TRACE_HEADER_SIZE 64u
#define TP_TRACE_RECORD_SIZE 64u
#define TP_TRACE_ALIGN 8u
#define TP_TRACE_CALLS 256u

enum {
    TP_TRACE_OVERFLOW = 1, /**< the file was full: recording stopped, faults still fire */
    TP_TRACE_FIRED = 2,    /**< a fault fired */
    TP_TRACE_STARVED = 8,  /**< an operation failed by ENOSPC, EDQUOT, ENOMEM, EMFILE or ENFILE */
    TP_TRACE_UNSEEN = 16,  /**< there is a mark "unseen ..." */
    TP_TRACE_REFUSED = 32  /**< there is a mark "refused ..." */
};

/** kind           offset        length        payload                       flags */
enum {
    TP_OP_OPEN = 1,   /**< open flags   0         path                    TP_OPEN_*            */
    TP_OP_CLOSE,      /**< 0            descriptors of the file left                           */
    TP_OP_READ,       /**< offset       bytes                                                  */
    TP_OP_WRITE,      /**< offset       bytes     data if asked for       TP_WRITE_*           */
    TP_OP_FSYNC,      /**< 0            0                                                      */
    TP_OP_FDATASYNC,  /**< 0            0                                                      */
    TP_OP_SYNC_RANGE, /**< offset       bytes                             sync_file_range's    */
    TP_OP_TRUNCATE,   /**< new size     0                                                      */
    TP_OP_FALLOCATE,  /**< offset       bytes                             mode of fallocate    */
    TP_OP_RENAME,     /**< 0            0         old, NUL, new           renameat2's          */
    TP_OP_UNLINK,     /**< 0            0         path                    TP_UNLINK_*          */
    TP_OP_SYNC_DIR,   /**< 0            0         path of the directory                        */
    TP_OP_MARK,       /**< 0            bytes     text of tp_trace_mark                        */
    TP_OP_KILL,       /**< of the operation       damage                  TP_FAULT_*           */
    TP_OP_MKDIR,      /**< mode         0         path                                         */
    TP_OP_FAULT,      /**< of the operation       action, damage          TP_FAULT_*           */
    TP_OP_LINK,       /**< 0            0         old, NUL, new                                */
    TP_OP_SYNC_ALL,   /**< 0            0         of all files: sync, syncfs                   */
    TP_OP_KINDS       /**< number of kinds plus one */
};

enum { TP_OPEN_CREATED = 1, TP_OPEN_DIRECTORY = 2 };
/** DURABLE: by O_DSYNC or O_SYNC of its descriptor, or RWF_DSYNC or RWF_SYNC of the call. */
enum { TP_WRITE_PAYLOAD = 1, TP_WRITE_APPEND = 2, TP_WRITE_DURABLE = 4 };
enum { TP_UNLINK_DIRECTORY = 1 };

/** Flags of KILL and FAULT: what was hit, when, and by which line of the plan. */
enum {
    TP_FAULT_KIND_MASK = 0xff, /**< TP_OP_* of the operation that was hit */
    TP_FAULT_AFTER = 0x100,    /**< KILL came after the operation (its own record stands before) */
    TP_FAULT_OLD_UNKNOWN = 0x200, /**< the old content could not be read: zeros are given */
    TP_FAULT_RULE_SHIFT = 10 /**< number of the fault line, from 0; TP_FAULT_RULE_FIU = libfiu */
};
#define TP_FAULT_RULE_FIU 63u
#define TP_FAULT_RULES_MAX 63u

/** Kinds of records in the log of call stacks. */
enum { TP_STACK_MODULE = 1, TP_STACK_FRAMES, TP_STACK_OF, TP_STACK_NOTE };

/** Action code in the first u32 of a FAULT's payload; the second u32 is the errno given, or 0. */
enum {
    TP_ACTION_KILL = 1,
    TP_ACTION_DROP,
    TP_ACTION_TEAR,
    TP_ACTION_CORRUPT,
    TP_ACTION_MISDIRECT,
    TP_ACTION_ERROR,
    TP_ACTION_SHORT
};

/** Damage: u32 sector size, u32 number of sectors n (both 0 unless a write was hit), then one byte
per sector padded to 8, then `length` bytes of old and `length` bytes of new content. */
enum { TP_SECTOR_LOST = 0, TP_SECTOR_KEPT = 1, TP_SECTOR_PARTLY = 2 };

typedef struct tp_trace_header {
    char magic[8];
    _Atomic uint64_t committed;
    _Atomic uint32_t flags;
    _Atomic uint32_t pid;
    _Atomic uint64_t events;
    uint64_t calls;
    uint8_t reserved[24];
} tp_trace_header_t;

typedef struct tp_trace_call {
    _Atomic uint32_t file;
    uint32_t zero;
    uint64_t offset;
    uint64_t length;
    uint8_t reserved[40]; /* a cache line each */
} tp_trace_call_t;

typedef struct tp_trace_record {
    uint32_t total;
    uint16_t kind;
    uint16_t flags;
    uint64_t seq;
    uint32_t file;
    uint32_t thread;
    uint64_t offset;
    uint64_t length;
    int64_t result;
    uint64_t hash;
    uint64_t began;
} tp_trace_record_t;

typedef struct tp_stack_frame {
    uint64_t module;
    uint64_t offset;
} tp_stack_frame_t;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the trace is little-endian");
static_assert(sizeof(tp_trace_header_t) == TP_TRACE_HEADER_SIZE, "header size");
static_assert(offsetof(tp_trace_header_t, committed) == 8, "header layout");
static_assert(offsetof(tp_trace_header_t, flags) == 16, "header layout");
static_assert(offsetof(tp_trace_header_t, pid) == 20, "header layout");
static_assert(offsetof(tp_trace_header_t, events) == 24, "header layout");
static_assert(offsetof(tp_trace_header_t, calls) == 32, "header layout");
static_assert(sizeof(tp_trace_call_t) == 64, "call size");
static_assert(offsetof(tp_trace_call_t, offset) == 8, "call layout");
static_assert(sizeof(tp_trace_record_t) == TP_TRACE_RECORD_SIZE, "record size");
static_assert(sizeof(tp_stack_frame_t) == 16, "frame size");
static_assert(offsetof(tp_trace_record_t, seq) == 8, "record layout");
static_assert(offsetof(tp_trace_record_t, file) == 16, "record layout");
static_assert(offsetof(tp_trace_record_t, offset) == 24, "record layout");
static_assert(offsetof(tp_trace_record_t, result) == 40, "record layout");
static_assert(offsetof(tp_trace_record_t, hash) == 48, "record layout");
static_assert(offsetof(tp_trace_record_t, began) == 56, "record layout");
static_assert(TP_OP_FAULT == 16 && TP_OP_KILL == 14 && TP_OP_SYNC_ALL == 18,
              "kinds are part of the format");
static_assert(TP_FAULT_RULE_FIU << TP_FAULT_RULE_SHIFT <= UINT16_MAX, "rule fits the flags");

/** Appends a MARK with this text, in order with the I/O of all threads. A program finds it with
dlsym(RTLD_DEFAULT, "tp_trace_mark"), so that it needs no link to the library. May not return: a
plan can kill the process at a mark. */
void tp_trace_mark(const char *text, size_t len);

/** Appends a NOTE with this text, without a NUL, and the stack of the caller to the log of call
stacks; the trace is the same without. A program finds it as tp_trace_mark(). len: 0: nothing is
noted. @return is there such a log? Else a program need not make texts */
bool tp_stack_note(const char *text, size_t len);

#endif
