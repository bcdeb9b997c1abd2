-- From version 2 to 3: nights; bugs, which version_3.py finds in the violations that are there. Those of censuses, which were
-- JSON in a column that goes afterwards, have a table of their own.

create table night (
    id          integer primary key,
    plan        text not null,
    state       text not null check (state in ('running', 'finished', 'failed')),
    seconds     real not null,
    origin      text not null
);

create table run_3 (
    id          integer primary key,
    campaign    text not null,
    target      text not null,
    seed        integer not null,
    trials      integer not null,
    settings    text not null,
    state       text not null check (state in ('running', 'finished', 'stopped', 'failed')),
    verdict     text not null,
    seconds     real not null,
    origin      text not null,
    night       integer references night (id)
);
insert into run_3 select id, campaign, target, seed, trials, settings, state, '', seconds, origin, null from run;
drop table run;
alter table run_3 rename to run;

create table bug (
    id          integer primary key,
    target      text not null,
    fingerprint text not null,
    title       text not null,
    invariants  text not null,
    status      text not null default 'new' check (status in ('new', 'known', 'fixed', 'ignored')),
    reason      text not null default '',
    run         integer not null,
    trial       integer,
    config      text not null,
    unique (target, fingerprint)
);

create table sighting (
    bug         integer not null references bug (id),
    run         integer not null,
    started     text not null,
    build       text not null,
    novelty     text not null check (novelty in ('new', 'back', 'again')),
    count       integer not null,
    primary key (bug, run)
) without rowid;

create index trial_outcome on trial (run, outcome);
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

create table replay (
    run         integer not null references run (id),
    bug         integer not null references bug (id),
    answer      text not null check (answer in ('reproduced', 'not reproduced', 'cannot be played')),
    note        text not null,
    primary key (run, bug)
) without rowid;

update schema_version set version = 3;
