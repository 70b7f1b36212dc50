/* Rows of a collection as options name them, and times as people write them.
 *
 * Days are counted by the proleptic Gregorian calendar, in UTC: the machine's zone plays no part,
 * so that a filter means the same wherever it is typed. */
#include "commands/common/rows/row_filter.h"

#include <math.h>
#include <string.h>

/* ---- times ---- */

enum { DAY_S = 86400 };

/* Days from 1970-01-01, with years that begin in March so that leap days end them. */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - 400 * era;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + 365 * of_era + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + 400 * era + (*month <= 2);
}

void pnb__time_text(int64_t seconds, char text[32])
{
    int64_t days = seconds / DAY_S - (seconds % DAY_S < 0), left = seconds - days * DAY_S, year;
    int month, day;
    date_of(days, &year, &month, &day);
    snprintf(text, 32, "%04lld-%02d-%02dT%02d:%02d:%02dZ", (long long)year, month, day,
             (int)(left / 3600), (int)(left / 60 % 60), (int)(left % 60));
}

bool pnb__time_read(const char *text, bool is_end, int64_t *out)
{
    int year, month, day, hour = 0, minute = 0, second = 0, n = 0, year_back, month_back, day_back;
    int64_t back = 0;
    if (strchr(text + (text[0] == '-'), '-') == NULL)
        return pnb__read_int(text, out);
    bool is_day = sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &n) == 3 && text[n] == '\0';
    bool is_time = !is_day && sscanf(text, "%4d-%2d-%2d%*[T ]%2d:%2d:%2d%n", &year, &month, &day,
                                     &hour, &minute, &second, &n) == 6;
    if (is_time && text[n] == 'Z')
        n++;
    if ((!is_day && !is_time) || text[n] != '\0' || hour > 23 || minute > 59 || second > 59 ||
        hour < 0 || minute < 0 || second < 0 || month < 1 || month > 12)
        return false;
    date_of(days_of(year, month, day), &back, &month_back, &day_back);
    year_back = (int)back;
    if (year_back != year || month_back != month || day_back != day)
        return false; /* the 31st of April */
    *out = days_of(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second;
    if (is_day && is_end)
        *out += DAY_S - 1;
    return true;
}

/* ---- filters ---- */

bool pnb__row_filter_given(const pnb__row_filter *a)
{
    return a->tags.n > 0 || a->since != NULL || a->until != NULL || !isnan(a->min_uncertainty) ||
           !isnan(a->max_uncertainty);
}

pnb_status pnb__row_filter_read(pnb__app *app, const pnb__row_filter *a, pnb_store_filter *out,
                                bool *given)
{
    *out = pnb_store_filter_default();
    *given = pnb__row_filter_given(a);
    out->tags = a->tags.items;
    out->n_tags = a->tags.n;
    if (a->since != NULL && !pnb__time_read(a->since, false, &out->since))
        return pnb__usage(app,
                          "--since %s: wanted is a day such as 2024-05-31, a time such as "
                          "2024-05-31T18:00:00, or Unix seconds",
                          a->since);
    if (a->until != NULL && !pnb__time_read(a->until, true, &out->until))
        return pnb__usage(app,
                          "--until %s: wanted is a day such as 2024-05-31, a time such as "
                          "2024-05-31T18:00:00, or Unix seconds",
                          a->until);
    if (!isnan(a->min_uncertainty))
        out->min_uncertainty = a->min_uncertainty;
    if (!isnan(a->max_uncertainty))
        out->max_uncertainty = a->max_uncertainty;
    return PNB_OK;
}
