-- From version 1 to 2: runs can fail and have an origin, censuses may be of scripts that are not crashed and have
-- counters, contents of torn writes are blobs (moved by version_2.py), violations say who found them (not known here).

create table run_2 (
    id          integer primary key,
    campaign    text not null,
    target      text not null,
    seed        integer not null,
    trials      integer not null,
    settings    text not null,
    state       text not null check (state in ('running', 'finished', 'failed')),
    seconds     real not null,
    origin      text not null
);
insert into run_2 select id, campaign, target, seed, trials, settings, state, seconds, '{}' from run;
drop table run;
alter table run_2 rename to run;

create table census_2 (
    run         integer not null references run (id),
    config      text not null,
    crashed     integer not null,
    hash        text not null,
    events      integer not null,
    writes      integer not null,
    violations  text not null,
    counters    text not null,
    primary key (run, config)
) without rowid;
insert into census_2 select run, config, 1, hash, events, writes, violations, '{}' from census;
drop table census;
alter table census_2 rename to census;

create table contents (
    run         integer not null references run (id),
    number      integer not null,
    old         blob not null,
    new         blob not null,
    primary key (run, number)
) without rowid;

create table violation_2 (
    run         integer not null references run (id),
    trial       integer not null,
    position    integer not null,
    invariant   integer not null,
    site        text,
    path        text not null,
    what        text not null,
    source      text not null,
    primary key (run, trial, position)
) without rowid;
insert into violation_2 select run, trial, position, invariant, site, path, what, 'state' from violation;
drop table violation;
alter table violation_2 rename to violation;

update schema_version set version = 2;
