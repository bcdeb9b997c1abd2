-- A store as version 4 of the schema wrote it: a run of a target file, known by its path.
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
INSERT INTO "bug" VALUES(1,'/home/ada/mydb/mydb.toml','state page torn','page torn: page # is torn','[5]','known','looked at',1,1,'log_optimize_ddl=on');
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
INSERT INTO "contents" VALUES(1,1,X'6F',X'6E');
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
INSERT INTO "run" VALUES(1,'smoke','/home/ada/mydb/mydb.toml',1,2,'{"name": "smoke"}','finished','violations',1.0,'{"started":"2026-11-01T01:00:00+00:00","host":"host","version":"0.1.0","command":"tornpage try mydb.toml","programs":{"run":"r1","harness":"h1"}}',NULL);
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
INSERT INTO "sighting" VALUES(1,1,'2026-11-01T01:00:00+00:00','r1','new',1);
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
INSERT INTO "trial" VALUES(1,0,'{"campaign":"smoke","target":"/home/ada/mydb/mydb.toml","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":0,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null,"follows":false}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','clean','{"number":0,"outcome":"clean","reason":"","violations":[],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{"dblwr_restored":1},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"a","digest":"","image":null,"torn":null,"alike":1,"answer":""}');
INSERT INTO "trial" VALUES(1,1,'{"campaign":"smoke","target":"/home/ada/mydb/mydb.toml","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":1,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null,"follows":false}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','violation','{"number":1,"outcome":"violation","reason":"","violations":[{"invariant":5,"what":"page 3 is torn","site":"page0","path":"t1.ibd","source":"state"}],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"b","digest":"","image":null,"torn":{"path":"t1.ibd","offset":0,"length":1,"sector":512,"kept":"10","old":"","new":""},"alike":1,"answer":""}');
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
COMMIT;
