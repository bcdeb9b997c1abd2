/* The two ends of every call on an open database.

Place: api/, below all other files of it.

Rules
1. (I23) A writing call that meets failed I/O or damaged bytes poisons the handle: what is half done
   in memory must not reach a file. From then on every call is refused and nothing is written. So is
   the call itself, wherever it met that: with log_write_through an append tells nobody else.
2. A call that fails otherwise has changed nothing that its caller can see.
3. Every failure has a message: that of the first cause, not of what followed it (undoing, calls on
   a poisoned handle); or at least the status. */
#include "api/api_int.h"

dberr_t engine_enter(engine_t *engine)
{
    if (engine->env.io_failed) {
        /* The first cause stays the message. */
        return DB_IO_ERROR;
    }
    engine->env.err.msg[0] = '\0';
    engine->env.err.refusal = REFUSAL_NONE;
    return DB_SUCCESS;
}

dberr_t engine_explain(engine_t *engine, dberr_t err)
{
    if (err != DB_SUCCESS && engine->env.err.msg[0] == '\0') {
        return err_set(&engine->env.err, err, "%s", err_name(err));
    }
    return err;
}

dberr_t engine_leave(engine_t *engine, dberr_t err)
{
    err = engine_explain(engine, err == DB_SUCCESS && engine->env.io_failed ? DB_IO_ERROR : err);
    if (err == DB_IO_ERROR || err == DB_CORRUPTION || err == DB_UNRECOVERABLE) {
        env_poison(&engine->env);
    }
    return err;
}

dberr_t engine_enter_table(engine_t *engine, const char *name, dict_table_t **out)
{
    TRY(engine_enter(engine));
    *out = dict_table_get(engine->dict, name);
    return *out != NULL ? DB_SUCCESS
                        : err_set(&engine->env.err, DB_NOT_FOUND, "no table '%s'", name);
}
