/** A fork server: this program, started once, becomes each of its children without another exec. */
#ifndef FAULTS_SERVE_H
#define FAULTS_SERVE_H

/** What the program was asked to become: its arguments and environment. */
typedef struct serve_start {
    int argc;
    /** argc of them and NULL; behind it, as behind a program's own, the environment */
    char **argv;
    char **env;
} serve_start_t;

/** Forks a child per request of standard input, and tells how each ended. argc, argv: of the
server. Returns in the children, single-threaded and with nothing of the program done yet; the
server ends with its input. */
serve_start_t serve_run(int argc, char **argv);

#endif
