/** Descriptors that came to this process from elsewhere: inherited over an exec, received from
another process. */
#ifndef FAULTS_ADOPT_H
#define FAULTS_ADOPT_H

/** Follows a descriptor from here on, if it leads to a file below the root; the stream gets its
OPEN. What wrote to that file before is not known where no process of the recording has opened it:
then there is a mark `unseen HOW path=PATH`. */
void adopt_descriptor(const char *how, int fd);

/** The same for all that this process was executed with. A standard stream that may write is
marked: the C library's own writes through it are not seen. */
void adopt_inherited(void);

#endif
