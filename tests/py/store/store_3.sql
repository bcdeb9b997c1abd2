-- A store as version 3 of the schema wrote it: a night with one run of two trials.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('4');
CREATE TABLE bug (
	id INTEGER NOT NULL, 
	target TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	title TEXT NOT NULL, 
	invariants TEXT NOT NULL, 
	status TEXT DEFAULT 'new' NOT NULL, 
	reason TEXT DEFAULT '' NOT NULL, 
	run INTEGER NOT NULL, 
	trial INTEGER, 
	config TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (target, fingerprint), 
	CHECK (status in ('new', 'known', 'fixed', 'ignored'))
);
INSERT INTO "bug" VALUES(1,'engine','state page torn','page torn: page # is torn','[5]','new','',1,1,'log_optimize_ddl=on');
CREATE TABLE census (
	run INTEGER NOT NULL, 
	config TEXT NOT NULL, 
	crashed INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	events INTEGER NOT NULL, 
	writes INTEGER NOT NULL, 
	counters TEXT NOT NULL, 
	PRIMARY KEY (run, config), 
	FOREIGN KEY(run) REFERENCES run (id)
)
 WITHOUT ROWID

;
INSERT INTO "census" VALUES(1,'a',1,'h',10,5,'{"btr_splits":2}');
CREATE TABLE census_violation (
	run INTEGER NOT NULL, 
	config TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	invariant INTEGER NOT NULL, 
	site TEXT, 
	path TEXT NOT NULL, 
	what TEXT NOT NULL, 
	source TEXT NOT NULL, 
	bug INTEGER NOT NULL, 
	PRIMARY KEY (run, config, position), 
	FOREIGN KEY(run) REFERENCES run (id), 
	FOREIGN KEY(bug) REFERENCES bug (id)
)
 WITHOUT ROWID

;
CREATE TABLE contents (
	run INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	old BLOB NOT NULL, 
	new BLOB NOT NULL, 
	PRIMARY KEY (run, number), 
	FOREIGN KEY(run) REFERENCES run (id)
)
 WITHOUT ROWID

;
INSERT INTO "contents" VALUES(1,1,X'6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F6F',X'6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E');
CREATE TABLE exploration (
	run INTEGER NOT NULL, 
	config TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	PRIMARY KEY (run, config), 
	FOREIGN KEY(run) REFERENCES run (id)
)
 WITHOUT ROWID

;
CREATE TABLE night (
	id INTEGER NOT NULL, 
	"plan" TEXT NOT NULL, 
	state TEXT NOT NULL, 
	seconds REAL NOT NULL, 
	origin TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CHECK (state in ('running', 'finished', 'failed'))
);
INSERT INTO "night" VALUES(1,'{"seed": 9}','finished',0.0,'{"started":"2026-11-21T19:00:00+00:00","host":"host","version":"","command":"","programs":{"engine":"b1"}}');
CREATE TABLE replay (
	run INTEGER NOT NULL, 
	bug INTEGER NOT NULL, 
	answer TEXT NOT NULL, 
	note TEXT NOT NULL, 
	PRIMARY KEY (run, bug), 
	CHECK (answer in ('reproduced', 'not reproduced', 'cannot be played')), 
	FOREIGN KEY(run) REFERENCES run (id), 
	FOREIGN KEY(bug) REFERENCES bug (id)
)
 WITHOUT ROWID

;
CREATE TABLE run (
	id INTEGER NOT NULL, 
	campaign TEXT NOT NULL, 
	target TEXT NOT NULL, 
	seed INTEGER NOT NULL, 
	trials INTEGER NOT NULL, 
	settings TEXT NOT NULL, 
	state TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	seconds REAL NOT NULL, 
	origin TEXT NOT NULL, 
	night INTEGER, 
	PRIMARY KEY (id), 
	CHECK (state in ('running', 'finished', 'stopped', 'failed')), 
	FOREIGN KEY(night) REFERENCES night (id)
);
INSERT INTO "run" VALUES(1,'smoke','engine',1,2,'{"name": "smoke"}','finished','violations',2.5,'{"started":"2026-11-21T19:00:00+00:00","host":"host","version":"","command":"","programs":{"engine":"b1"}}',1);
CREATE TABLE sighting (
	bug INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	started TEXT NOT NULL, 
	build TEXT NOT NULL, 
	novelty TEXT NOT NULL, 
	count INTEGER NOT NULL, 
	PRIMARY KEY (bug, run), 
	CHECK (novelty in ('new', 'back', 'again')), 
	FOREIGN KEY(bug) REFERENCES bug (id)
)
 WITHOUT ROWID

;
INSERT INTO "sighting" VALUES(1,1,'2026-11-21T19:00:00+00:00','b1','new',1);
CREATE TABLE trial (
	run INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	spec TEXT NOT NULL, 
	config TEXT NOT NULL, 
	site TEXT NOT NULL, 
	mask TEXT NOT NULL, 
	outcome TEXT, 
	result TEXT, 
	PRIMARY KEY (run, number), 
	FOREIGN KEY(run) REFERENCES run (id)
)
 WITHOUT ROWID

;
INSERT INTO "trial" VALUES(1,0,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":0,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null,"follows":false}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','clean','{"number":0,"outcome":"clean","reason":"","violations":[],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{"dblwr_restored":1},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"a","digest":"","image":null,"torn":null,"alike":1,"answer":""}');
INSERT INTO "trial" VALUES(1,1,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":1,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null,"follows":false}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','violation','{"number":1,"outcome":"violation","reason":"","violations":[{"invariant":5,"what":"page 3 is torn","site":"page0","path":"t1.ibd","source":"state"}],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"b","digest":"","image":null,"torn":{"path":"t1.ibd","offset":0,"length":1024,"sector":512,"kept":"10","old":"","new":""},"alike":1,"answer":""}');
CREATE TABLE violation (
	run INTEGER NOT NULL, 
	trial INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	invariant INTEGER NOT NULL, 
	site TEXT, 
	path TEXT NOT NULL, 
	what TEXT NOT NULL, 
	source TEXT NOT NULL, 
	bug INTEGER, 
	PRIMARY KEY (run, trial, position), 
	FOREIGN KEY(run) REFERENCES run (id), 
	FOREIGN KEY(bug) REFERENCES bug (id)
)
 WITHOUT ROWID

;
INSERT INTO "violation" VALUES(1,1,0,5,'page0','t1.ibd','page 3 is torn','state',1);
CREATE INDEX trial_outcome ON trial (run, outcome);
CREATE INDEX violation_bug ON violation (bug);
CREATE INDEX census_violation_bug ON census_violation (bug);
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
        (select cast(sum(cast(json_extract(summary, '$.states') as bigint)) as bigint) from exploration where run = run.id),
        (select count(*) from trial where run = run.id and outcome is not null and outcome != 'harness_error')
    ) as crashes,
    (
        select cast(coalesce(sum(cast(json_extract(result, '$.alike') as bigint)), 0) as bigint)
        from trial
        where run = run.id and outcome = 'violation'
    ) as broken,
    (select count(*) from trial where run = run.id and outcome in ('harness_error', 'unstable')) as unsure,
    (select count(*) from sighting where run = run.id) as bugs,
    (select count(*) from sighting where run = run.id and novelty != 'again') as news,
    cast(round(cast(run.seconds as numeric), 1) as double precision) as seconds,
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
    cast(sum(sighting.count) as bigint) as count,
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
    cast(json_extract(result, '$.seconds.total') as double precision) as seconds,
    cast(json_extract(spec, '$.workload_seed') as bigint) as script_seed,
    json_extract(spec, '$.plan.loss') as state,
    cast(json_extract(result, '$.alike') as bigint) as alike,
    json_extract(result, '$.image') as image
from trial;
CREATE VIEW cells as
select
    run,
    substr(config || ' ', 1, instr(config || ' ', ' ') - 1) as config,
    site,
    mask,
    count(*) as trials,
    count(*) filter (where outcome = 'clean') as clean,
    count(*) filter (where outcome = 'violation') as broken,
    count(*) filter (where outcome not in ('clean', 'violation')) as idle
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
    cast(sum(cast(json_extract(mask.value, '$.writes') as bigint)) as bigint) as writes,
    cast(sum(cast(json_extract(mask.value, '$.states') as bigint)) as bigint) as states
from
    exploration,
    json_each(exploration.summary, '$.torn_pages') as site,
    json_each(site.value) as flush,
    json_each(flush.value) as mask
group by 1, 2, 3, 4, 5;
CREATE VIEW counters as
select trial.run, 'recovery' as during, counter.key as name, cast(sum(cast(counter.value as bigint)) as bigint) as total
from trial, json_each(trial.result, '$.counters') as counter
where not exists (select 1 from exploration where run = trial.run)
group by 1, 3
union all
select exploration.run, 'recovery', path.key, cast(sum(cast(path.value as bigint)) as bigint)
from exploration, json_each(exploration.summary, '$.paths') as path
group by 1, 3
union all
select census.run, 'run', counter.key, cast(sum(cast(counter.value as bigint)) as bigint)
from census, json_each(census.counters) as counter
group by 1, 3;
CREATE VIEW nights as
select
    night.id,
    json_extract(night.origin, '$.started') as started,
    cast(json_extract(night.plan, '$.seed') as bigint) as seed,
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
