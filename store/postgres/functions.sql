-- These functions exist in SQLite, but not in PostgreSQL. They are in the schema of the tables,
-- because some constraints call them.

CREATE FUNCTION json_valid(value text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    PERFORM value::json;
    RETURN true;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN false;
END $$;

-- Returns the numbers of a JSON array.
CREATE FUNCTION json_each(items text) RETURNS TABLE (value bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 100 AS
    $$ SELECT CAST(e.item AS bigint) FROM pg_catalog.json_array_elements_text(CAST(items AS json)) AS e (item) $$;

-- Returns the position of a part in a text, from 1, or 0 if the text does not contain it.
CREATE FUNCTION instr(value text, part text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
    $$ SELECT CAST(pg_catalog.strpos(value, part) AS bigint) $$;

-- Both return NULL if one of the arguments is NULL, unlike greatest and least.
CREATE FUNCTION max(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
    $$ SELECT greatest(a, b) $$;
CREATE FUNCTION min(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
    $$ SELECT least(a, b) $$;

-- Facts about the database, such as the version of its tables.
CREATE TABLE meta (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);
