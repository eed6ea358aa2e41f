// A key without its hash, as `key`: whoever may use it now is told by its `state`.
RETURN k {.uid, .owner, .scopes, .corpora, .questions_per_minute, .tokens_per_day, .bytes_per_day,
          created_at: toString(k.created_at), expires_at: coalesce(toString(k.expires_at), ''),
          state: CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at < datetime() THEN 'expired'
                      ELSE 'active' END} AS key
