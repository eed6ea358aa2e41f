// What the service keeps beside the corpora: keys, sessions and jobs. These nodes are of no corpus. No relationship leads
// to them, no archive has them, and deleting a corpus leaves them. No other file names their labels.

// name: create_key(uid, properties, seconds) write
// Create a key that expires after `seconds`, or never without them.
CYPHER 25 CREATE (k:Key {uid: $uid})
SET k += $properties, k.created_at = datetime(),
    k.expires_at = CASE WHEN $seconds IS NULL THEN NULL ELSE datetime() + duration({seconds: $seconds}) END;

// name: list_keys() read
// Return all keys, the newest first.
CYPHER 25 MATCH (k:Key)
// part: key
ORDER BY key.created_at DESC, key.uid;

// name: find_key(digest) read
// Return the key whose token has this hash.
CYPHER 25 MATCH (k:Key {hash: $digest})
// part: key
;

// name: revoke_key(uid) write
// Revoke a key, and return whether there is one.
CYPHER 25 MATCH (k:Key {uid: $uid})
SET k.revoked_at = coalesce(k.revoked_at, datetime())
RETURN k.uid AS uid;

// name: create_session(digest, key, seconds) write
// Create a session of a key, whose token has this hash, for so many seconds.
CYPHER 25 CREATE (s:Session {hash: $digest, key: $key, expires_at: datetime() + duration({seconds: $seconds})});

// name: find_session(digest) read
// Return the key of the session whose token has this hash, unless the session is over.
CYPHER 25 MATCH (s:Session {hash: $digest}) WHERE s.expires_at > datetime()
MATCH (k:Key {uid: s.key})
// part: key
;

// name: end_session(digest) write
CYPHER 25 MATCH (s:Session {hash: $digest}) DELETE s;

// name: forget_sessions() write
// Delete the sessions that are over.
CYPHER 25 MATCH (s:Session) WHERE s.expires_at < datetime() DELETE s;

// name: spend(uid, questions, tokens, bytes) write
// Count what a key uses in this minute and this day. Nothing is counted if that is over a limit, which `over` names;
// `wait` says how many seconds it lasts. Tokens are known afterwards, so they are counted over the limit too.
CYPHER 25 MATCH (k:Key {uid: $uid})
SET k.uid = k.uid // takes the lock before the counts are read
WITH k, datetime().epochSeconds AS now
WITH k, now, now / 60 AS minute, now / 86400 AS day
SET k.questions = CASE WHEN k.minute = minute THEN k.questions ELSE 0 END,
    k.tokens = CASE WHEN k.day = day THEN k.tokens ELSE 0 END,
    k.bytes = CASE WHEN k.day = day THEN k.bytes ELSE 0 END,
    k.minute = minute, k.day = day
WITH k, now, CASE WHEN $questions > 0 AND k.questions + $questions > k.questions_per_minute THEN 'questions_per_minute'
                  WHEN $questions > 0 AND k.tokens >= k.tokens_per_day THEN 'tokens_per_day'
                  WHEN $bytes > 0 AND k.bytes + $bytes > k.bytes_per_day THEN 'bytes_per_day' END AS over
SET k.questions = k.questions + CASE WHEN over IS NULL THEN $questions ELSE 0 END,
    k.bytes = k.bytes + CASE WHEN over IS NULL THEN $bytes ELSE 0 END,
    k.tokens = k.tokens + $tokens
RETURN over, k.tokens_per_day - k.tokens AS left,
       CASE over WHEN 'questions_per_minute' THEN 60 - now % 60 ELSE 86400 - now % 86400 END AS wait;

// name: create_job(uid, properties, timeout) write
// Create a job unless there is one, and return what it was asked for. A question's is `fresh` too if it has no memory
// `timeout` seconds after it was taken.
CYPHER 25 MERGE (j:Job {uid: $uid})
ON CREATE SET j += $properties, j.created_at = datetime(), j.attempts = 0
WITH j, j.taken IS NULL
        OR j.kind = 'question' AND j.memory IS NULL AND j.taken < datetime() - duration({milliseconds: $timeout * 1000})
        AS fresh
SET j.taken = CASE WHEN fresh THEN datetime() ELSE j.taken END
RETURN fresh, j.digest AS digest, j {.memory, .question, .steps, .answers} AS asked;

// name: set_job_question(uid, asked) write
// Keep how a question was accepted: the hash of its text, its memory, and how many steps and answers that had before.
CYPHER 25 MATCH (j:Job {uid: $uid}) SET j += $asked;

// name: free_question(uid) write
CYPHER 25 MATCH (j:Job {uid: $uid}) WHERE j.memory IS NULL SET j.taken = NULL;

// name: claim_job(run, timeout) write
// Lease the oldest job that waits, or whose lease was not renewed in the last `timeout` seconds.
CYPHER 25 MATCH (j:Job) WHERE j.state IN ['waiting', 'running']
  AND (j.state = 'waiting' OR j.heartbeat < datetime() - duration({milliseconds: $timeout * 1000}))
WITH j ORDER BY j.created_at, j.uid LIMIT 1
SET j.uid = j.uid // takes the lock before the lease is read
WITH j WHERE j.state = 'waiting'
  OR (j.state = 'running' AND j.heartbeat < datetime() - duration({milliseconds: $timeout * 1000}))
SET j.state = 'running', j.run = $run, j.heartbeat = datetime(), j.attempts = j.attempts + 1
RETURN j {.uid, .kind, .corpus, .key, .owner, .attempts, .arguments} AS job, j.data AS data;

// name: renew_job(uid, run, done, total) write
// Renew the lease, and return whether the job is to be cancelled.
CYPHER 25 MATCH (j:Job {uid: $uid})
SET j.uid = j.uid // takes the lock before the lease is read
WITH j WHERE j.run = $run AND j.state = 'running'
SET j.heartbeat = datetime(), j.done = $done, j.total = $total
RETURN coalesce(j.cancel, false) AS cancel;

// name: release_job(uid, run, state, result, error) write
// End the run of a job. One that waits again keeps its data.
CYPHER 25 MATCH (j:Job {uid: $uid})
SET j.uid = j.uid // takes the lock before the lease is read
WITH j WHERE j.run = $run
SET j.run = NULL, j.heartbeat = NULL, j.result = $result, j.error = $error,
    j.attempts = CASE $state WHEN 'waiting' THEN 0 ELSE j.attempts END,
    j.state = CASE WHEN $state = 'waiting' AND j.cancel THEN 'cancelled' ELSE $state END
SET j.data = CASE j.state WHEN 'waiting' THEN j.data END,
    j.ended_at = CASE j.state WHEN 'waiting' THEN NULL ELSE datetime() END;

// name: cancel_job(uid) write
CYPHER 25 MATCH (j:Job {uid: $uid})
SET j.cancel = true
WITH j WHERE j.state = 'waiting'
SET j.state = 'cancelled', j.data = NULL, j.ended_at = datetime();

// name: find_job(uid) read
CYPHER 25 MATCH (j:Job {uid: $uid}) WHERE j.kind <> 'question'
RETURN j {.uid, .kind, .corpus, .key, .owner, .attempts, .arguments, .state, .done, .total, .error, .result,
          created_at: toString(j.created_at), ended_at: coalesce(toString(j.ended_at), '')} AS job;

// name: list_jobs(name) read
// Return the jobs of the corpus of this name, the newest first.
CYPHER 25 MATCH (j:Job) WHERE j.corpus = $name AND j.kind <> 'question'
RETURN j {.uid, .kind, .corpus, .key, .owner, .attempts, .arguments, .state, .done, .total, .error, .result,
          created_at: toString(j.created_at), ended_at: coalesce(toString(j.ended_at), '')} AS job
ORDER BY job.created_at DESC, job.uid;

// name: forget_jobs(days) write
// Delete the records of jobs and questions that ended so many days ago.
CYPHER 25 MATCH (j:Job) WHERE j.state IN ['done', 'failed', 'cancelled', 'asked']
  AND coalesce(j.ended_at, j.created_at) < datetime() - duration({days: $days})
DELETE j;
