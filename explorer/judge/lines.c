/* Lines of a file, in a buffer that grows with the longest one. Place: leaf of judge/. */
#include "explorer/judge/lines.h"

#include <stdlib.h>
#include <sys/types.h>

bool lines_each(FILE *file, line_fn *each, void *of)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    bool more = true;
    while (more && (length = getline(&line, &room, file)) >= 0) {
        more = each(of, line, (size_t)length);
    }
    free(line);
    return more && ferror(file) == 0;
}
