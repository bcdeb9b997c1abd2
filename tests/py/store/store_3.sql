-- A store as version 3 of the schema wrote it: a night with one run of two trials.
BEGIN TRANSACTION;
CREATE TABLE bug (
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
INSERT INTO "bug" VALUES(1,'engine','state page torn','page torn: page # is torn','[5]','new','',1,1,'log_optimize_ddl=on');
CREATE TABLE census (
    run         integer not null references run (id),
    config      text not null,
    crashed     integer not null,   -- 1: its script gets trials or is explored; 0: it is only run and judged
    hash        text not null,      -- of the event stream
    events      integer not null,
    writes      integer not null,
    counters    text not null,      -- JSON: status counters at its end
    primary key (run, config)
) without rowid;
INSERT INTO "census" VALUES(1,'a',1,'h',10,5,'{"btr_splits":2}');
CREATE TABLE census_violation (
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
CREATE TABLE contents (
    run         integer not null references run (id),
    number      integer not null,
    old         blob not null,
    new         blob not null,
    primary key (run, number)
) without rowid;
INSERT INTO "contents" VALUES(1,1,X'6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F',X'6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E');
CREATE TABLE exploration (
    run         integer not null references run (id),
    config      text not null,
    summary     text not null,      -- JSON: the explorer's last object
    primary key (run, config)
) without rowid;
CREATE TABLE night (
    id          integer primary key,
    plan        text not null,      -- JSON NightPlan: seed, campaigns, time
    state       text not null check (state in ('running', 'finished', 'failed')),
    seconds     real not null,      -- spent so far, over all resumptions
    origin      text not null       -- JSON Origin
);
INSERT INTO "night" VALUES(1,'{"seed": 9}','finished',0.0,'{"started":"2026-11-21T19:00:00+00:00","host":"host","version":"","command":"","programs":{"engine":"b1"}}');
CREATE TABLE replay (
    run         integer not null references run (id),
    bug         integer not null references bug (id),
    answer      text not null check (answer in ('reproduced', 'not reproduced', 'cannot be played')),
    note        text not null,
    primary key (run, bug)
) without rowid;
CREATE TABLE run (
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
INSERT INTO "run" VALUES(1,'smoke','engine',1,2,'{"name": "smoke"}','finished','violations',2.5,'{"started":"2026-11-21T19:00:00+00:00","host":"host","version":"","command":"","programs":{"engine":"b1"}}',1);
CREATE TABLE schema_version (
    version integer not null
);
INSERT INTO "schema_version" VALUES(3);
CREATE TABLE sighting (
    bug         integer not null references bug (id),
    run         integer not null,
    started     text not null,      -- of the run, ISO 8601
    build       text not null,      -- hash of the target's programs
    novelty     text not null check (novelty in ('new', 'back', 'again')), -- never seen before; was fixed; neither
    count       integer not null,   -- trials, power-loss states and undisturbed runs that show it
    primary key (bug, run)
) without rowid;
INSERT INTO "sighting" VALUES(1,1,'2026-11-21T19:00:00+00:00','b1','new',1);
CREATE TABLE trial (
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
INSERT INTO "trial" VALUES(1,0,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":0,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null,"follows":false}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','clean','{"number":0,"outcome":"clean","reason":"","violations":[],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{"dblwr_restored":1},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"a","digest":"","image":null,"torn":null,"alike":1,"answer":""}');
INSERT INTO "trial" VALUES(1,1,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":1,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null,"follows":false}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','violation','{"number":1,"outcome":"violation","reason":"","violations":[{"invariant":5,"what":"page 3 is torn","site":"page0","path":"t1.ibd","source":"state"}],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"b","digest":"","image":null,"torn":{"path":"t1.ibd","offset":0,"length":1024,"sector":512,"kept":"10","old":"","new":""},"alike":1,"answer":""}');
CREATE TABLE violation (
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
INSERT INTO "violation" VALUES(1,1,0,5,'page0','t1.ibd','page 3 is torn','state',1);
CREATE INDEX trial_outcome on trial (run, outcome);
CREATE INDEX violation_bug on violation (bug);
CREATE INDEX census_violation_bug on census_violation (bug);
CREATE VIEW runs as
select
    run.id,
    json_extract(run.origin, '$.started') as started,
    run.campaign,
    run.target,
    run.seed,
    run.state,
    run.verdict,
    coalesce(
        (select sum(json_extract(summary, '$.states')) from exploration where run = run.id),
        (select count(*) from trial where run = run.id and outcome is not null and outcome != 'harness_error')
    ) as crashes,
    (select coalesce(sum(json_extract(result, '$.alike')), 0) from trial where run = run.id and outcome = 'violation')
        as broken,
    (select count(*) from trial where run = run.id and outcome in ('harness_error', 'unstable')) as unsure,
    (select count(*) from sighting where run = run.id) as bugs,
    (select count(*) from sighting where run = run.id and novelty != 'again') as news,
    round(run.seconds, 1) as seconds,
    run.night,
    json_extract(run.origin, '$.host') as host,
    json_extract(run.origin, '$.version') as version,
    json_extract(run.origin, '$.command') as command
from run;
CREATE VIEW bugs as
select
    bug.id,
    bug.target,
    bug.title,
    bug.status,
    bug.reason,
    bug.invariants,
    min(sighting.run) as first_run,
    min(sighting.started) as first_seen,
    max(sighting.run) as last_run,
    max(sighting.started) as last_seen,
    count(*) as runs,
    sum(sighting.count) as count,
    bug.run || '.' || bug.trial as reproducer,
    bug.fingerprint
from bug join sighting on sighting.bug = bug.id
group by bug.id;
CREATE VIEW sightings as
select sighting.bug, bug.title, sighting.run, run.campaign, sighting.started, sighting.build, sighting.novelty, sighting.count
from sighting join bug on bug.id = sighting.bug left join run on run.id = sighting.run;
CREATE VIEW findings as
select
    violation.run,
    violation.run || '.' || violation.trial as trial,
    trial.config,
    trial.site,
    trial.mask,
    json_extract(trial.result, '$.alike') as alike,
    violation.invariant,
    violation.source,
    violation.what,
    violation.path,
    violation.bug,
    bug.title,
    bug.status
from violation
join trial on trial.run = violation.run and trial.number = violation.trial
left join bug on bug.id = violation.bug
union all
select
    census_violation.run, null, census_violation.config, 'run', 'none', 1, census_violation.invariant,
    census_violation.source, census_violation.what, census_violation.path, census_violation.bug, bug.title, bug.status
from census_violation join bug on bug.id = census_violation.bug;
CREATE VIEW trials as
select
    run || '.' || number as trial,
    run,
    number,
    config,
    site,
    mask,
    outcome,
    json_extract(result, '$.reason') as reason,
    json_extract(result, '$.seconds.total') as seconds,
    json_extract(spec, '$.workload_seed') as script_seed,
    json_extract(spec, '$.plan.loss') as state,
    json_extract(result, '$.alike') as alike,
    json_extract(result, '$.image') as image
from trial;
CREATE VIEW cells as
select
    run,
    substr(config || ' ', 1, instr(config || ' ', ' ') - 1) as config,
    site,
    mask,
    count(*) as trials,
    sum(outcome = 'clean') as clean,
    sum(outcome = 'violation') as broken,
    sum(outcome not in ('clean', 'violation')) as idle
from trial
where outcome is not null and json_extract(spec, '$.plan.loss') = ''
group by 1, 2, 3, 4;
CREATE VIEW coverage as
select
    exploration.run,
    substr(exploration.config || ' ', 1, instr(exploration.config || ' ', ' ') - 1) as config,
    site.key as site,
    flush.key as flush,
    mask.key as mask,
    sum(json_extract(mask.value, '$.writes')) as writes,
    sum(json_extract(mask.value, '$.states')) as states
from
    exploration,
    json_each(exploration.summary, '$.torn_pages') as site,
    json_each(site.value) as flush,
    json_each(flush.value) as mask
group by 1, 2, 3, 4, 5;
CREATE VIEW counters as
select trial.run, 'recovery' as during, counter.key as name, sum(counter.value) as total
from trial, json_each(trial.result, '$.counters') as counter
where not exists (select 1 from exploration where run = trial.run)
group by 1, 3
union all
select exploration.run, 'recovery', path.key, sum(path.value)
from exploration, json_each(exploration.summary, '$.paths') as path
group by 1, 3
union all
select census.run, 'run', counter.key, sum(counter.value)
from census, json_each(census.counters) as counter
group by 1, 3;
CREATE VIEW nights as
select
    night.id,
    json_extract(night.origin, '$.started') as started,
    json_extract(night.plan, '$.seed') as seed,
    night.state,
    round(night.seconds) as seconds,
    (select count(*) from run where night = night.id) as runs,
    (select count(distinct bug) from sighting join run on run.id = sighting.run where run.night = night.id) as bugs,
    (
        select count(distinct bug) from sighting join run on run.id = sighting.run
        where run.night = night.id and novelty != 'again'
    ) as news
from night;
COMMIT;
