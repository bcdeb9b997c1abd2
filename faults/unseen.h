/** Marks of changes that the layer cannot follow. */
#ifndef FAULTS_UNSEEN_H
#define FAULTS_UNSEEN_H

/** A call that changes or syncs what this descriptor is, if that is tracked. */
void unseen_at_descriptor(const char *call, int fd);

/** The same of a path, followed if it is a symbolic link. */
void unseen_at_path(const char *call, int dirfd, const char *path);

/** A call that may change any file, in a process that has had an event or not. */
void unseen_anywhere(const char *call);

#endif
