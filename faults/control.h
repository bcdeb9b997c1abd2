/** The control socket: other processes, as the client of a server, put marks into the stream of the recorded one. */
#ifndef FAULTS_CONTROL_H
#define FAULTS_CONTROL_H

/** Listens on the abstract Unix socket of this name, in a thread of its own that lives as long as the process. A
connection sends one line, which becomes a mark, and reads `ok` when that is in the stream. Returns 0 or an errno. */
int control_start(const char *name);

#endif
