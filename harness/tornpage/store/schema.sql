-- The result store of Tornpage. One file holds any number of runs; WAL mode, so that killing the harness
-- loses no finished verdict. JSON columns hold the values of model.py as codec.to_json() writes them.

-- One row: the version of this schema. An older store is brought up to date (from_N.sql), a newer one refused.
create table schema_version (
    version integer not null
);
insert into schema_version values (3);

-- A night: past findings played again, then campaigns with new seeds, for as long as its plan says.
create table night (
    id          integer primary key,
    plan        text not null,      -- JSON NightPlan: seed, campaigns, time
    state       text not null check (state in ('running', 'finished', 'failed')),
    seconds     real not null,      -- spent so far, over all resumptions
    origin      text not null       -- JSON Origin
);

-- A campaign that was started, finished or not.
create table run (
    id          integer primary key,
    campaign    text not null,      -- name, as "smoke"
    target      text not null,      -- name, as "engine"
    seed        integer not null,
    trials      integer not null,   -- planned
    settings    text not null,      -- JSON: the whole campaign after --set, from which trials are drawn again
    state       text not null check (state in ('running', 'finished', 'stopped', 'failed')),
    verdict     text not null,      -- at its end: clean, violations, unsure, nothing; '' before, and where not known
    seconds     real not null,      -- spent on trials so far, over all resumptions
    origin      text not null,      -- JSON Origin: when, where, version, command line, hashes of the programs
    night       integer references night (id)
);

-- One undisturbed run: what it writes, and its verdict.
create table census (
    run         integer not null references run (id),
    config      text not null,
    crashed     integer not null,   -- 1: its script gets trials or is explored; 0: it is only run and judged
    hash        text not null,      -- of the event stream
    events      integer not null,
    writes      integer not null,
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
create index trial_outcome on trial (run, outcome);

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

-- What is wrong with a target: one cause, however many findings tell of it. Runs are deleted, bugs are not.
create table bug (
    id          integer primary key,
    target      text not null,
    fingerprint text not null,      -- of its root, see oracle/root.py
    title       text not null,      -- its first finding without names and numbers
    invariants  text not null,      -- JSON list: what its findings broke
    status      text not null default 'new' check (status in ('new', 'known', 'fixed', 'ignored')),
    reason      text not null default '',   -- why it has this status
    run         integer not null,   -- its reproducer: a trial, the smallest that is known,
    trial       integer,            -- or null: the undisturbed run of config
    config      text not null,
    unique (target, fingerprint)
);

-- A bug in a run. It stays when the run is deleted: the bug's history.
create table sighting (
    bug         integer not null references bug (id),
    run         integer not null,
    started     text not null,      -- of the run, ISO 8601
    build       text not null,      -- hash of the target's programs
    novelty     text not null check (novelty in ('new', 'back', 'again')), -- never seen before; was fixed; neither
    count       integer not null,   -- trials, power-loss states and undisturbed runs that show it
    primary key (bug, run)
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
    bug         integer references bug (id), -- null: of an unstable trial, which is no finding
    primary key (run, trial, position)
) without rowid;
create index violation_bug on violation (bug);

-- The broken invariants of an undisturbed run.
create table census_violation (
    run         integer not null references run (id),
    config      text not null,
    position    integer not null,
    invariant   integer not null,
    site        text,
    path        text not null,
    what        text not null,
    source      text not null,
    bug         integer not null references bug (id),
    primary key (run, config, position)
) without rowid;
create index census_violation_bug on census_violation (bug);

-- What became of a bug's reproducer when a run played it again.
create table replay (
    run         integer not null references run (id),
    bug         integer not null references bug (id),
    answer      text not null check (answer in ('reproduced', 'not reproduced', 'cannot be played')),
    note        text not null,
    primary key (run, bug)
) without rowid;
