-- From version 2 to 3: bugs, which migrate.py finds in the violations that are there. Those of censuses, which were
-- JSON in a column that goes afterwards, have a table of their own.

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

create table sighting (
    bug         integer not null references bug (id),
    run         integer not null,
    started     text not null,      -- of the run, ISO 8601
    build       text not null,      -- hash of the target's programs
    novelty     text not null check (novelty in ('new', 'back', 'again')), -- never seen before; was fixed; neither
    count       integer not null,   -- trials, power-loss states and undisturbed runs that show it
    primary key (bug, run)
) without rowid;

alter table violation add column bug integer references bug (id);
create index violation_bug on violation (bug);

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

update schema_version set version = 3;
