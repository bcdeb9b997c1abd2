-- Tables that are there before the run: `prepare` of mariadb-*.toml.
CREATE TABLE t1 (id INT NOT NULL PRIMARY KEY, a INT NOT NULL, b VARCHAR(200) NOT NULL, KEY (a)) ENGINE=InnoDB
CREATE TABLE t2 (id INT NOT NULL PRIMARY KEY, a INT NOT NULL, b CHAR(60) NOT NULL, c VARCHAR(40)) ENGINE=InnoDB
INSERT INTO t2 SELECT seq, seq * 7919 % 10007, SHA1(seq), MD5(seq * 3) FROM seq_1_to_2500
INSERT INTO t1 SELECT seq, seq * 31 % 97, REPEAT(SHA1(seq), 4) FROM seq_1_to_150
