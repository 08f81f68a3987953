/* t-status.c -- status texts and the version. */
#include "support/support.h"

#include <mpsim/mpsim.h>

#include <stdio.h>

CASE("status", 4);

TEST(every_status_has_a_text_of_its_own)
{
    static const mpsim_status all[] = {MPSIM_OK,           MPSIM_EINVAL, MPSIM_ENOTFOUND, MPSIM_ERANGE,  MPSIM_ENOMEM,
                                       MPSIM_EUNAVAILABLE, MPSIM_EDATA,  MPSIM_EIO,       MPSIM_ESTOPPED};
    enum { N = sizeof all / sizeof all[0] };
    for (int i = 0; i < N; i++) {
        ck_assert_str_ne(mpsim_status_string(all[i]), "unknown status");
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(mpsim_status_string(all[i]), mpsim_status_string(all[k]));
    }
    ck_assert_str_eq(mpsim_status_string((mpsim_status)N), "unknown status");
    ck_assert_str_eq(mpsim_status_string((mpsim_status)77), "unknown status");
    ck_assert_str_eq(mpsim_status_string((mpsim_status)-1), "unknown status");
}

TEST(the_version_has_three_numbers)
{
    int a, b, c;
    char rest;
    ck_assert_int_eq(sscanf(mpsim_version(), "%d.%d.%d%c", &a, &b, &c, &rest), 3);
}

TEST_MAIN("status");
