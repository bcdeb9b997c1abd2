-- Functions that SQLite has and PostgreSQL has not, as far as views.sql wants them. A document is text that holds JSON,
-- a path is $.a.b; what has no such place is null, or has no row.

create or replace function json_extract(document text, path text) returns text
language sql immutable strict parallel safe
as $$ select document::json #>> string_to_array(substr(path, 3), '.') $$;

create or replace function json_each(document text) returns table (key text, value text)
language sql immutable strict parallel safe
as $$ select * from json_each_text(document::json) $$;

create or replace function json_each(document text, path text) returns table (key text, value text)
language sql immutable strict parallel safe
as $$ select * from json_each_text(document::json #> string_to_array(substr(path, 3), '.')) $$;

create or replace function instr(whole text, part text) returns integer
language sql immutable strict parallel safe
as $$ select strpos(whole, part) $$;
