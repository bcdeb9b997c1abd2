/* A SQLite database, as whoever has only the library sees it: the rows of every table, then PRAGMA
 * integrity_check. Takes the path of the database. */
#include <stdio.h>

typedef struct sqlite3 sqlite3;
int sqlite3_open(const char *path, sqlite3 **db);
typedef int (*each_t)(void *told, int n, char **values, char **names);
int sqlite3_exec(sqlite3 *db, const char *sql, each_t each, void *told, char **message);
const char *sqlite3_errmsg(sqlite3 *db);
const char *sqlite3_libversion(void);

static int print_row(void *told, int n, char **values, char **names)
{
    (void)told;
    (void)names;
    for (int i = 0; i < n; i++) {
        printf("%s%s", i > 0 ? "|" : "", values[i] != NULL ? values[i] : "NULL");
    }
    printf("\n");
    return 0;
}

static int ask(sqlite3 *db, const char *sql, each_t each, void *told)
{
    int code = sqlite3_exec(db, sql, each, told, NULL);
    if (code != 0) {
        printf("%s: error %d: %s\n", sql, code, sqlite3_errmsg(db));
    }
    return code;
}

static int print_table(void *told, int n, char **values, char **names)
{
    (void)n;
    (void)names;
    char sql[512];
    snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", values[0]);
    printf("table %s\n", values[0]);
    ask(told, sql, print_row, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    sqlite3 *db;
    if (argc != 2 || sqlite3_open(argv[1], &db) != 0) {
        fprintf(stderr, "usage: see DATABASE\n");
        return 2;
    }
    printf("SQLite %s\n", sqlite3_libversion());
    const char *tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1";
    int code = ask(db, tables, print_table, db);
    printf("integrity_check: ");
    code |= ask(db, "PRAGMA integrity_check", print_row, NULL);
    return code != 0;
}
