/* How the active committee agrees on one block of a height: two votes with locks, a full quorum (more than 2/3 of the
   active units) and a stall quorum (docs/protocol/safety.md). check.py runs it with several configurations.

   Every leader is adversarial: in each view each block may be proposed to each voter, so a proof for all leader orders
   comes from one model, and honest voters of equal units are interchangeable. The Byzantine voter has cast every vote in
   every view; each honest voter counts such a vote or does not. A vote, once cast, stays available; an honest voter acts
   on it at any later time or never, so messages are delayed, lost and reordered at will. Timeouts are nondeterministic.
   Time is left out: every voter may always be in a stall, and a vote counts towards both quorums.

   Configuration (cpp):
     H, W0..W6      honest voters (at most 7), their units; voters of equal units stand side by side
     WB             units of the Byzantine voter, or of several that act as one; 0: none
     V              views (1 to 3)
     HEIGHTS        1 or 2; a certified presence block makes a voter dormant at the second height:
                    the last honest one, or the Byzantine one with MARKS_BYZANTINE
     NX, NB         blocks 1..NX have arbitrary content, NX+1..NB (at most 3) change presence only
     SN, SD         the stall quorum is more than SN/SD of the units; SN 0: there is none
     SEEN_UNITS     instead, it is more than half of the active units and an eighth of those of the first height, or all
     NOBODY_STALLED no honest voter takes a lock of a stall quorum; certificates of stall quorums count nevertheless
     LOCKSTEP       all voters change views together. Votes of a view depend on votes of this and earlier views only, so no
                    behaviour is lost, except of a voter that takes the lock of a view that it has not entered. Of the
                    views before, locks and certificates are kept, not the votes.
     PROGRESS       in each state, each set of honest voters that is a stall quorum decides in one synchronous view
                    under an honest leader
   Rules that a configuration plants as bugs:
     NO_LOCKS               a voter prepares a block though it has a lock of another one
     OLD_UNLOCK             a voter exchanges its lock for any other one, not only for a newer one
     ONE_VOTE               a quorum of prepares is a certificate
     AMNESIA                one voter once forgets view, prepare and lock
     PRESENCE_OVER_LOCK     a voter prepares a presence block though it has a lock of another block
     NO_STALL_LOCK          a block of arbitrary content never passes with the stall quorum
     ANY_AT_STALL           it does so without an earlier lock, too
     ARBITRARY_LOCKS_FIRST  a leader prefers the newest lock of arbitrary content to a newer lock of a presence block
     LATE_LOCKS_BIND        a voter takes the lock of an earlier view at once, not only when it enters a view or by a proposal
     FIRST_QUORUM           a leader proposes at the first quorum of NewViews, without one of the honest voters
     SILENCE_BINDS_LOCKS    a voter prepares no block that makes a voter dormant that it has heard, not even a lock */

#ifndef H
#define H 3
#endif
#ifndef W0
#define W0 1
#endif
#ifndef W1
#define W1 1
#endif
#ifndef W2
#define W2 1
#endif
#ifndef W3
#define W3 1
#endif
#ifndef W4
#define W4 1
#endif
#ifndef W5
#define W5 1
#endif
#ifndef W6
#define W6 1
#endif
#ifndef WB
#define WB 1
#endif
#ifndef V
#define V 3
#endif
#ifndef HEIGHTS
#define HEIGHTS 1
#endif
#ifndef NX
#define NX 2
#endif
#ifndef NB
#define NB 3
#endif
#ifndef SN
#define SN 5
#endif
#ifndef SD
#define SD 8
#endif

/* One honest voter: bits 0-1 view, 2-3 view of its lock plus 1 (0: no lock), 4-5 block of its lock, 6-7 block that it
   prepared in this view (0: none). Then three bits of prepares and three of commits for each view, one for each block. */
int s[H];
byte wt[H];      /* active units; 0: dormant */
byte wb;
byte height;
byte certified;  /* bit b: there is a certificate of block b */
short locks;     /* bit 3 v + b - 1: there is a lock of block b in view v */
#ifdef LOCKSTEP
byte now;
#define VIEW(i) now
#else
#define VIEW(i) (s[i] & 3)
#endif
#ifdef AMNESIA
bit forgot;
#endif

#define LOCK_VIEW(i) ((s[i] >> 2) & 3)
#define LOCK_BLOCK(i) ((s[i] >> 4) & 3)
#define PREPARED(i) ((s[i] >> 6) & 3)
#define PREPARE_BIT(v, b) (1 << (8 + 6 * (v) + (b) - 1))
#define COMMIT_BIT(v, b) (1 << (11 + 6 * (v) + (b) - 1))
#define HAS(set, v, b) ((set) & (1 << (3 * (v) + (b) - 1)))
#define IS_PRESENCE(b) ((b) > NX)
#define FULL(w) (3 * (w) > 2 * total)
#ifdef SEEN_UNITS
#define STALL(w) (8 * (w) > 4 * total + SEEN || (w) == total)
#define SEEN (W0 + WB + (H > 1 -> W1 : 0) + (H > 2 -> W2 : 0) + (H > 3 -> W3 : 0) + (H > 4 -> W4 : 0) + \
              (H > 5 -> W5 : 0) + (H > 6 -> W6 : 0))
#else
#define STALL(w) (SN > 0 && SD * (w) > SN * total)
#endif

#ifdef NO_LOCKS
#define LOCK_ALLOWS(i, b) true
#elif defined(PRESENCE_OVER_LOCK)
#define LOCK_ALLOWS(i, b) (LOCK_VIEW(i) == 0 || LOCK_BLOCK(i) == (b) || IS_PRESENCE(b))
#else
#define LOCK_ALLOWS(i, b) (LOCK_VIEW(i) == 0 || LOCK_BLOCK(i) == (b))
#endif
#ifdef OLD_UNLOCK
#define LOCK_IS_NEWER(i, v) (LOCK_VIEW(i) != (v) + 1)
#else
#define LOCK_IS_NEWER(i, v) (LOCK_VIEW(i) < (v) + 1)
#endif
#ifdef NO_STALL_LOCK
#define STALL_LOCKS false
#else
#define STALL_LOCKS true
#endif
#ifdef NOBODY_STALLED
#define LOCKED_IN_STALLS false
#else
#define LOCKED_IN_STALLS true
#endif
#ifdef ANY_AT_STALL
#define ANY_BLOCK true
#else
#define ANY_BLOCK false
#endif

#define MAY_PASS(b) (IS_PRESENCE(b) || ANY_BLOCK || (before && STALL_LOCKS))

/* Of two voters in the same state only the first acts. */
#define SAME(i, j) (wt[i] == wt[j] && s[i] == s[j])
#define ACTS(i) (wt[i] > 0 && (i == 0 || !SAME(i, (i + H - 1) % H)))

/* Blocks of one kind are interchangeable: the second is not prepared before the first. */
#define USED(b) (used & (1 << (b)))
#define IN_ORDER(b) ((b) == 1 || (b) == NX + 1 || USED((b) - 1))
byte used;

#define PREPARES(i, b) \
  :: b <= NB && ACTS(i) && PREPARED(i) == 0 && LOCK_ALLOWS(i, b) && IN_ORDER(b) -> \
     s[i] = (s[i] & ~192) | (b << 6) | PREPARE_BIT(VIEW(i), b); used = used | (1 << (b)); \
     printf("a voter of %d units prepares block %d in view %d\n", wt[i], b, VIEW(i))
#define LOCKS(i, v, b) \
  :: v < V && b <= NB && ACTS(i) && HAS(locks, v, b) && LOCK_IS_NEWER(i, v) -> \
     s[i] = (s[i] & ~60) | ((v + 1) << 2) | (b << 4); printf("a voter of %d units locks block %d of view %d\n", wt[i], b, v)
#define COMMITS(i) \
  :: ACTS(i) && LOCK_VIEW(i) == VIEW(i) + 1 && !(s[i] & COMMIT_BIT(VIEW(i), LOCK_BLOCK(i))) -> \
     s[i] = s[i] | COMMIT_BIT(VIEW(i), LOCK_BLOCK(i)); \
     printf("a voter of %d units commits to block %d in view %d\n", wt[i], LOCK_BLOCK(i), VIEW(i))
#ifdef LOCKSTEP
#define ENTERS(i)
#else
#define ENTERS(i) :: ACTS(i) && VIEW(i) < V - 1 -> s[i] = (s[i] & ~192) + 1
#endif
#ifdef AMNESIA
#define FORGETS(i) :: ACTS(i) && !forgot -> s[i] = s[i] & ~255; forgot = 1; printf("a voter of %d units forgets\n", wt[i])
#else
#define FORGETS(i)
#endif
#define VOTER(i) \
  PREPARES(i, 1) PREPARES(i, 2) PREPARES(i, 3) COMMITS(i) ENTERS(i) FORGETS(i) \
  LOCKS(i, 0, 1) LOCKS(i, 0, 2) LOCKS(i, 0, 3) LOCKS(i, 1, 1) LOCKS(i, 1, 2) LOCKS(i, 1, 3) \
  LOCKS(i, 2, 1) LOCKS(i, 2, 2) LOCKS(i, 2, 3)

/* Set before they are read, within one step: no part of the state. */
hidden int i, j, v, b, w, c, total, swap, alive, heard, top, block;
hidden byte before;

inline sort_voters() {
  j = 1;
  do
  :: j < H ->
     i = j;
     do
     :: i > 0 && wt[i] == wt[i - 1] && s[i] < s[i - 1] -> swap = s[i]; s[i] = s[i - 1]; s[i - 1] = swap; i--
     :: else -> break
     od;
     j++
  :: else -> break
  od
}

inline add_up() {
  total = wb;
  i = 0;
  do
  :: i < H -> total = total + wt[i]; i++
  :: else -> break
  od
}

/* Locks and certificates that exist. The stall quorum is enough for a block that changes presence only, and for a block
   whose prepares have been a full quorum: in an earlier view for a lock, in this or an earlier one for a certificate. */
inline count_votes() {
  b = 1;
  do
  :: b <= NB ->
     before = false;
     v = 0;
     do
     :: v < V ->
        w = wb;
        c = wb;
        i = 0;
        do
        :: i < H ->
           if
           :: s[i] & PREPARE_BIT(v, b) -> w = w + wt[i]
           :: else
           fi;
           if
           :: s[i] & COMMIT_BIT(v, b) -> c = c + wt[i]
           :: else
           fi;
           i++
        :: else -> break
        od;
#ifdef ONE_VOTE
        c = w;
#endif
        if
        :: FULL(w) || (LOCKED_IN_STALLS && MAY_PASS(b) && STALL(w)) -> locks = locks | (1 << (3 * v + b - 1))
        :: else
        fi;
        if
        :: HAS(locks, v, b) -> before = true
        :: else
        fi;
        if
        :: FULL(c) || (MAY_PASS(b) && STALL(c)) -> certified = certified | (1 << b)
        :: else
        fi;
        v++
     :: else -> break
     od;
     b++
  :: else -> break
  od;
  assert((certified & (certified - 1)) == 0)  /* agreement: certificates of one height are of one block */
}

/* The honest leader of a synchronous view hears the set `heard` of the set `alive`: all of it, unless FIRST_QUORUM. It knows
   their locks. The other voters, and the Byzantine one, are silent. It proposes the block of the newest lock; without any,
   a block of arbitrary content if a full quorum is there, else a presence block. A voter takes the locks of earlier views
   only when it enters a view or finds them in the proposal of its view, so nothing else that it hears meanwhile keeps it
   from preparing. */
inline synchronous_view() {
  top = 0;
  block = 0;
  i = 0;
  do
  :: i < H ->
     if
     :: (heard & (1 << i)) && LOCK_VIEW(i) > top -> top = LOCK_VIEW(i); block = LOCK_BLOCK(i)
     :: else
     fi;
     i++
  :: else -> break
  od;
#ifdef ARBITRARY_LOCKS_FIRST
  i = 0;
  v = 0;
  do
  :: i < H ->
     if
     :: (heard & (1 << i)) && LOCK_VIEW(i) > v && !IS_PRESENCE(LOCK_BLOCK(i)) ->
        v = LOCK_VIEW(i); top = v; block = LOCK_BLOCK(i)
     :: else
     fi;
     i++
  :: else -> break
  od;
#endif
  c = 0;  /* units that prepare */
  i = 0;
  do
  :: i < H ->
     if
     :: (alive & (1 << i)) && (LOCK_VIEW(i) < top || LOCK_VIEW(i) == 0 || LOCK_BLOCK(i) == block) -> c = c + wt[i]
     :: else
     fi;
     i++
  :: else -> break
  od;
#ifdef SILENCE_BINDS_LOCKS
  /* The voter that the block makes dormant has come back, and everybody has heard it. */
  if
  :: block > 0 && IS_PRESENCE(block) && FULL(w) -> c = 0
  :: else
  fi;
#endif
#ifdef LATE_LOCKS_BIND
  /* The Byzantine voter shows a newer lock, which it kept back, to all after the proposal. */
  i = top;
  do
  :: i < V ->
     b = 1;
     do
     :: b <= NB ->
        if
        :: b != block && HAS(locks, i, b) -> c = 0
        :: else
        fi;
        b++
     :: else -> break
     od;
     i++
  :: else -> break
  od;
#endif
  before = (block > 0);
  assert(FULL(c) || ((block == 0 || MAY_PASS(block)) && STALL(c)))  /* progress */
}

inline check_progress() {
  alive = 1;
  do
  :: alive < (1 << H) ->
     w = 0;
     i = 0;
     do
     :: i < H ->
        if
        :: alive & (1 << i) -> w = w + wt[i]
        :: else
        fi;
        i++
     :: else -> break
     od;
     if
     :: FULL(w) || STALL(w) ->
        heard = alive;
        synchronous_view();
#ifdef FIRST_QUORUM
        /* The Byzantine voter is quicker than one of the others. */
        j = 0;
        do
        :: j < H ->
           heard = alive & ~(1 << j);
           if
           :: heard != alive && (FULL(w - wt[j] + wb) || STALL(w - wt[j] + wb)) -> synchronous_view()
           :: else
           fi;
           j++
        :: else -> break
        od
#endif
     :: else
     fi;
     alive++
  :: else -> break
  od
}

inline settle() {
  d_step {
    sort_voters();
    add_up();
    count_votes();
#ifdef PROGRESS
    check_progress();
#endif
    skip
  }
}

#define CERTIFIED(b) (certified & (1 << (b)))

/* A certificate of this height exists: its successor begins with no votes. Voters that stay behind cast no vote of the
   next height; what they still do at this one is explored where nobody goes on. */
inline next_height() {
  d_step {
    i = 0;
    do
    :: i < H -> s[i] = 0; i++
    :: else -> break
    od;
    if
    :: IS_PRESENCE(b) ->
#ifdef MARKS_BYZANTINE
       wb = 0
#else
       wt[H - 1] = 0
#endif
    :: else
    fi;
    used = 0;
    locks = 0;
    certified = 0;
#ifdef LOCKSTEP
    now = 0;
#endif
    height++;
    printf("block %d is certified and begins the next height\n", b)
  }
}

init {
  d_step {
    wb = WB;
    wt[0] = W0;
#if H > 1
    wt[1] = W1;
#endif
#if H > 2
    wt[2] = W2;
#endif
#if H > 3
    wt[3] = W3;
#endif
#if H > 4
    wt[4] = W4;
#endif
#if H > 5
    wt[5] = W5;
#endif
#if H > 6
    wt[6] = W6;
#endif
    skip
  }
  do
  :: atomic {
       if
       VOTER(0)
#if H > 1
       VOTER(1)
#endif
#if H > 2
       VOTER(2)
#endif
#if H > 3
       VOTER(3)
#endif
#if H > 4
       VOTER(4)
#endif
#if H > 5
       VOTER(5)
#endif
#if H > 6
       VOTER(6)
#endif
#ifdef LOCKSTEP
       :: now < V - 1 ->
          d_step {
            now++;
            printf("all voters enter view %d\n", now);
            i = 0;
            do
            :: i < H -> s[i] = s[i] & 63; i++
            :: else -> break
            od
          }
#endif
#if HEIGHTS > 1
       :: height + 1 < HEIGHTS && CERTIFIED(1) -> b = 1; next_height()
       :: height + 1 < HEIGHTS && NB > 1 && CERTIFIED(2) -> b = 2; next_height()
       :: height + 1 < HEIGHTS && NB > 2 && CERTIFIED(3) -> b = 3; next_height()
#endif
       fi;
       settle()
     }
  od
}
