/** Streams of the C library on files below the root. */
#ifndef FAULTS_STREAM_H
#define FAULTS_STREAM_H

#include <stdbool.h>
#include <stdio.h>

/** Writes out what a stream holds that is about to be closed under the lock. False, with errno: it
could not, and holds it no more. */
bool stream_flush(FILE *stream);

#endif
