/** The environment that this process was started with, without the C library's functions: a program
such as bash brings its own getenv, which is not ready before main. */
#ifndef FAULTS_ENVIRONMENT_H
#define FAULTS_ENVIRONMENT_H

#include <stdbool.h>

/** The value of a variable, NULL if there is none or it is empty. It lies in the program's memory,
which the program may overwrite as soon as it runs: what is needed later is copied. */
const char *environment_get(const char *name);

/** Adds NAME=VALUE in front of a copy of the environment. False: no memory. */
bool environment_put(const char *name, const char *value);

#endif
