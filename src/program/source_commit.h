/* Which state of the source this program is. */
#ifndef PNB_PROGRAM_SOURCE_COMMIT_H
#define PNB_PROGRAM_SOURCE_COMMIT_H

/* The commit's full hash, "-changed" behind it where the tree differed from it; NULL: built outside
 * a repository. */
const char *pnb__source_commit(void);

#endif
