-- A labeling project is one file. What assessors did is only ever added to it.

CREATE TABLE setting (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE query (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  description TEXT NOT NULL
) STRICT;

CREATE TABLE document (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('text', 'html'))
) STRICT;

-- Documents that are judged for a query; place 1 is the best in the order of the runs.
CREATE TABLE candidate (
  query INTEGER NOT NULL REFERENCES query (id),
  place INTEGER NOT NULL,
  document INTEGER NOT NULL REFERENCES document (id),
  PRIMARY KEY (query, place),
  UNIQUE (query, document)
) STRICT, WITHOUT ROWID;

CREATE TABLE assessor (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  -- A new edition makes all links and sessions of before worthless.
  edition INTEGER NOT NULL DEFAULT 1
) STRICT;

-- One tool for each assessor and query: whoever judged a query once remembers it.
CREATE TABLE assignment (
  id INTEGER PRIMARY KEY,
  assessor INTEGER NOT NULL REFERENCES assessor (id),
  query INTEGER NOT NULL REFERENCES query (id),
  strategy TEXT NOT NULL,
  k INTEGER NOT NULL CHECK (k >= 1),
  seed INTEGER NOT NULL,
  place INTEGER NOT NULL,
  made_at REAL NOT NULL,
  UNIQUE (assessor, query)
) STRICT;
CREATE INDEX assignment_of_query ON assignment (query);

CREATE TABLE event (
  assignment INTEGER NOT NULL REFERENCES assignment (id),
  seq INTEGER NOT NULL CHECK (seq >= 1),
  verdict TEXT NOT NULL,
  -- In the order in which the strategy asked; where they stood on the screen is a column of its own.
  first INTEGER REFERENCES document (id),
  second INTEGER REFERENCES document (id),
  first_left INTEGER,
  grade INTEGER,
  comment TEXT NOT NULL,
  token TEXT NOT NULL UNIQUE,
  shown_at REAL,
  at REAL NOT NULL,
  active_seconds REAL,
  PRIMARY KEY (assignment, seq)
) STRICT, WITHOUT ROWID;

-- What pages tell about themselves, by the server's clock: shown, hidden, idle, paused and so on.
CREATE TABLE activity (
  id INTEGER PRIMARY KEY,
  assignment INTEGER NOT NULL REFERENCES assignment (id),
  seq INTEGER NOT NULL,
  page TEXT NOT NULL,
  kind TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;
CREATE INDEX activity_of_judgment ON activity (assignment, seq);
CREATE INDEX activity_pauses ON activity (assignment) WHERE kind IN ('pause', 'resume');

CREATE TABLE void (
  assignment INTEGER PRIMARY KEY REFERENCES assignment (id),
  reason TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;

CREATE TABLE session (
  hash TEXT PRIMARY KEY,
  -- NULL is the owner.
  assessor INTEGER REFERENCES assessor (id),
  edition INTEGER NOT NULL,
  made_at REAL NOT NULL,
  ends_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at REAL NOT NULL,
  action TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;

CREATE TRIGGER event_is_final_update BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are only added'); END;
CREATE TRIGGER event_is_final_delete BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are only added'); END;
CREATE TRIGGER activity_is_final_update BEFORE UPDATE ON activity BEGIN SELECT RAISE(ABORT, 'events are only added'); END;
CREATE TRIGGER activity_is_final_delete BEFORE DELETE ON activity BEGIN SELECT RAISE(ABORT, 'events are only added'); END;
CREATE TRIGGER assignment_is_final BEFORE UPDATE OF assessor, query, strategy, k, seed ON assignment
BEGIN SELECT RAISE(ABORT, 'an assignment is not changed: void it and make another'); END;
CREATE TRIGGER audit_is_final_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'events are only added'); END;
CREATE TRIGGER audit_is_final_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'events are only added'); END;
