/* A counter. A commit is one line of the log, its number twice, synced. cc -o store store.c */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "tornpage_mark.h"

static void load(const char *folder)
{
    if (chdir(folder) != 0) { exit(1); }
    int log = open("store.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
    fsync(open(".", O_RDONLY)); /* the name of the log */
    for (int n = 0; n <= 30; n++) {
        char line[1500]; /* three sectors */
        n == 0 ? tornpage_ready() : tornpage_issue((unsigned long)n);
        int len = snprintf(line, sizeof(line), "%0700d %0700d\n", n, n);
        if (n > 0 && (write(log, line, (size_t)len) != len || fsync(log) != 0)) { exit(1); }
        if (n > 0) { tornpage_ack((unsigned long)n); }
        printf("{\"n\": %d, \"state\": {\"counter\": \"%d\"}}\n", n, n);
    }
}

static void recover(const char *folder)
{
    int last = 0, a, b;
    if (chdir(folder) != 0) { exit(1); }
    FILE *log = fopen("store.log", "r");
    while (log && fscanf(log, "%700d %700d", &a, &b) == 2 && a == b && a == last + 1) { last = a; }
    printf("{\"ok\": true, \"state\": {\"counter\": \"%d\"}}\n", last);
}

int main(int argc, char **argv)
{
    char folder[4096];
    if (argc > 2) { load(argv[2]); return 0; }
    return scanf("%4095[^\n]", folder) == 1 ? recover(folder), 0 : 1;
}
