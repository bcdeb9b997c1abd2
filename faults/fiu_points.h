/** The interposed operations as points of libfiu, so that fiu-run and fiu-ctrl can fail them. */
#ifndef FAULTS_FIU_POINTS_H
#define FAULTS_FIU_POINTS_H

#include <stdint.h>

/** Does what fiu-run's own preload would do: runs the commands (one per line, or NULL), opens the
control pipe with this base name (or NULL). Returns NULL, or what failed (static or kept text). */
const char *fiu_points_setup(const char *commands, const char *fifo);

/** The errno that libfiu wants this kind of operation to fail with now, or 0. */
int fiu_points_fail(uint16_t kind);

#endif
