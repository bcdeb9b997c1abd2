-- Undo logs that fill both tablespaces beyond 10 MB, one transaction each: `prepare` with --undo truncated.
CREATE TABLE u (id INT NOT NULL PRIMARY KEY, b VARCHAR(700) NOT NULL) ENGINE=InnoDB
INSERT INTO u SELECT seq, REPEAT(SHA1(seq), 17) FROM seq_1_to_300
BEGIN
60 TIMES UPDATE u SET b = REPEAT(SHA1(b), 17)
COMMIT
BEGIN
60 TIMES UPDATE u SET b = REPEAT(SHA1(b), 17)
COMMIT
DROP TABLE u
