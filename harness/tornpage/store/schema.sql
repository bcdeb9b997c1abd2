-- The result store of Tornpage. One file holds any number of runs; WAL mode, so that killing the harness
-- loses no finished verdict. JSON columns hold the values of model.py as codec.to_json() writes them.

-- One row: the version of this schema. An older store is brought up to date (from_N.sql), a newer one refused.
create table schema_version (
    version integer not null
);
insert into schema_version values (2);

-- A campaign that was started, finished or not.
create table run (
    id          integer primary key,
    campaign    text not null,      -- name, as "smoke"
    target      text not null,      -- name, as "engine"
    seed        integer not null,
    trials      integer not null,   -- planned
    settings    text not null,      -- JSON: the whole campaign after --set, from which trials are drawn again
    state       text not null check (state in ('running', 'finished', 'failed')),
    seconds     real not null,      -- spent on trials so far, over all resumptions
    origin      text not null       -- JSON Origin: when, where, version, command line, hashes of the programs
);

-- One undisturbed run: what it writes, and its verdict.
create table census (
    run         integer not null references run (id),
    config      text not null,
    crashed     integer not null,   -- 1: its script gets trials or is explored; 0: it is only run and judged
    hash        text not null,      -- of the event stream
    events      integer not null,
    writes      integer not null,
    violations  text not null,      -- JSON list of Violation
    counters    text not null,      -- JSON: status counters at its end
    primary key (run, config)
) without rowid;

-- A trial: the row is written before it starts, the verdict when it is known.
create table trial (
    run         integer not null references run (id),
    number      integer not null,   -- counts from 0; "RUN.NUMBER" is the id that `tornpage replay` takes
    spec        text not null,      -- JSON TrialSpec: all that a replay needs
    config      text not null,
    site        text not null,
    mask        text not null,
    outcome     text,               -- null while it runs
    result      text,               -- JSON TrialResult without contents, null while it runs
    primary key (run, number)
) without rowid;

-- Before and after of the write that a trial's fault hit, where they are kept.
create table contents (
    run         integer not null references run (id),
    number      integer not null,
    old         blob not null,
    new         blob not null,
    primary key (run, number)
) without rowid;

-- What the power-loss explorer found in a configuration: one row when it is done.
create table exploration (
    run         integer not null references run (id),
    config      text not null,
    summary     text not null,      -- JSON: the explorer's last object
    primary key (run, config)
) without rowid;

-- The broken invariants of a trial.
create table violation (
    run         integer not null references run (id),
    trial       integer not null,
    position    integer not null,
    invariant   integer not null,
    site        text,
    path        text not null,
    what        text not null,
    source      text not null,      -- state, rule or run: who says so
    primary key (run, trial, position)
) without rowid;
