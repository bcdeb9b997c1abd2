-- What a person asks of the store, for sqlite3, psql, pandas and Datasette: docs/STORE.md has examples. Views carry no data.
-- Tables have names in the singular, views in the plural. SQLite and
-- PostgreSQL read them as they stand here; what is computed has a type by its cast, by which a filter of a page compares.

-- crashes: trials with a verdict, or power-loss states; broken: those of them that broke an invariant; unsure: trials
-- without a verdict that holds; bugs, news: how many it saw, and how many of them were new or came back.
create view runs as
select
    run.id,
    json_extract(run.origin, '$.started') as started,
    run.campaign,
    run.target,
    run.seed,
    run.state,
    run.verdict,
    cast(coalesce(
        (select sum(cast(json_extract(summary, '$.states') as bigint)) from exploration where run = run.id),
        (select count(*) from trial where run = run.id and outcome is not null and outcome != 'harness_error')
    ) as bigint) as crashes,
    cast((
        select coalesce(sum(cast(json_extract(result, '$.alike') as bigint)), 0)
        from trial
        where run = run.id and outcome = 'violation'
    ) as bigint) as broken,
    cast((select count(*) from trial where run = run.id and outcome in ('harness_error', 'unstable')) as bigint) as unsure,
    cast((select count(*) from sighting where run = run.id) as bigint) as bugs,
    cast((select count(*) from sighting where run = run.id and novelty != 'again') as bigint) as news,
    cast(round(cast(run.seconds as numeric), 1) as double precision) as seconds,
    run.night,
    json_extract(run.origin, '$.host') as host,
    json_extract(run.origin, '$.version') as version,
    json_extract(run.origin, '$.command') as command
from run;

create view bugs as
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
    cast(count(*) as bigint) as runs,
    cast(sum(sighting.count) as bigint) as count,
    bug.run || '.' || bug.trial as reproducer,
    bug.fingerprint
from bug join sighting on sighting.bug = bug.id
group by bug.id;

create view lives as
select life.bug, bug.title, life.number, life.status, life.reason, life.at, life.build, life.revision, life.host, life.run, life.night
from life join bug on bug.id = life.bug;

create view sightings as
select sighting.bug, bug.title, sighting.run, run.campaign, sighting.started, sighting.build, sighting.novelty, sighting.count
from sighting join bug on bug.id = sighting.bug left join run on run.id = sighting.run;

-- One row per broken invariant; trial is what `tornpage replay` takes, null for a fault-free run.
create view findings as
select
    violation.run,
    violation.run || '.' || violation.trial as trial,
    trial.config,
    trial.site,
    trial.mask,
    cast(json_extract(trial.result, '$.alike') as bigint) as alike,
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
    golden_run_violation.run, null, golden_run_violation.config, 'run', 'none', 1, golden_run_violation.invariant,
    golden_run_violation.source, golden_run_violation.what, golden_run_violation.path, golden_run_violation.bug, bug.title, bug.status
from golden_run_violation join bug on bug.id = golden_run_violation.bug;

create view trials as
select
    run || '.' || number as trial,
    run,
    number,
    config,
    site,
    mask,
    outcome,
    json_extract(result, '$.reason') as reason,
    cast(json_extract(result, '$.seconds.total') as double precision) as seconds,
    cast(json_extract(spec, '$.workload_seed') as bigint) as script_seed,
    json_extract(spec, '$.plan.loss') as state,
    cast(json_extract(result, '$.alike') as bigint) as alike,
    json_extract(result, '$.image') as image
from trial;

-- What `tornpage explain` has found; the frames of each operation are in the JSON.
create view explanations as
select
    run || '.' || name as trial,
    run,
    json_extract(found, '$.cause.kind') as kind,
    json_extract(found, '$.sentence') as sentence,
    json_extract(found, '$.recording') as recording,
    cast(json_extract(found, '$.probes') as bigint) as probes
from explanation;

-- Kills: how many trials of a run hit a site with a mask in a configuration, by outcome.
create view cells as
select
    run,
    substr(config || ' ', 1, instr(config || ' ', ' ') - 1) as config,
    site,
    mask,
    cast(count(*) as bigint) as trials,
    cast(count(*) filter (where outcome = 'clean') as bigint) as clean,
    cast(count(*) filter (where outcome = 'violation') as bigint) as broken,
    cast(count(*) filter (where outcome not in ('clean', 'violation')) as bigint) as idle
from trial
where outcome is not null and json_extract(spec, '$.plan.loss') = ''
group by 1, 2, 3, 4;

-- Power loss: how many states of a run lost a write of a site and flush that way, and how many writes could be lost so.
create view coverage as
select
    exploration.run,
    substr(exploration.config || ' ', 1, instr(exploration.config || ' ', ' ') - 1) as config,
    site.key as site,
    flush.key as flush,
    mask.key as mask,
    cast(sum(cast(json_extract(mask.value, '$.writes') as bigint)) as bigint) as writes,
    cast(sum(cast(json_extract(mask.value, '$.states') as bigint)) as bigint) as states
from
    exploration,
    json_each(exploration.summary, '$.torn_pages') as site,
    json_each(site.value) as flush,
    json_each(flush.value) as mask
group by 1, 2, 3, 4, 5;

-- What recoveries did in all trials or states of a run, and what its fault-free runs did.
create view counters as
select trial.run, 'recovery' as during, counter.key as name, cast(sum(cast(counter.value as bigint)) as bigint) as total
from trial, json_each(trial.result, '$.counters') as counter
where not exists (select 1 from exploration where run = trial.run)
group by 1, 3
union all
select exploration.run, 'recovery', path.key, cast(sum(cast(path.value as bigint)) as bigint)
from exploration, json_each(exploration.summary, '$.paths') as path
group by 1, 3
union all
select golden_run.run, 'run', counter.key, cast(sum(cast(counter.value as bigint)) as bigint)
from golden_run, json_each(golden_run.counters) as counter
group by 1, 3;

create view nights as
select
    night.id,
    json_extract(night.origin, '$.started') as started,
    cast(json_extract(night.plan, '$.seed') as bigint) as seed,
    night.state,
    round(night.seconds) as seconds,
    cast((select count(*) from run where night = night.id) as bigint) as runs,
    cast((
        select count(distinct bug) from sighting join run on run.id = sighting.run where run.night = night.id
    ) as bigint) as bugs,
    cast((
        select count(distinct bug) from sighting join run on run.id = sighting.run
        where run.night = night.id and novelty != 'again'
    ) as bigint) as news
from night;
