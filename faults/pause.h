/** Acknowledgements at which the recorded processes stand still until somebody has looked at their
files. */
#ifndef FAULTS_PAUSE_H
#define FAULTS_PAUSE_H

#include <stddef.h>

#define PAUSE_NAME_MAX 107u /**< bytes of the name of an abstract Unix socket */

/** If the mark is an acknowledgement: connects to the abstract Unix socket, and returns when the
other side has closed the connection, or when there is none. Called under the layer's lock, behind
the mark's record: meanwhile nothing is recorded, and what has begun may be done in the file. name:
at most PAUSE_NAME_MAX bytes; "": no pause. */
void pause_at_mark(const char *name, const char *text, size_t len);

#endif
