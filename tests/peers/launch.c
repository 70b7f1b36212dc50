/* What launchers set, understood or refused with the variable's name. */
#include "tests/peers/together.h"

static pnb_launch read_ok(const char *const *environment)
{
    pnb_launch l = {0};
    ASSERT_OK(pnb_launch_read(&l, environment, &err));
    return l;
}

static void assert_refused(const char *const *environment, const char *why)
{
    pnb_launch l = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_not_equal(pnb_launch_read(&l, environment, &err), PNB_OK);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_alone(void **state)
{
    (void)state;
    assert_int_equal(read_ok(NULL).how, PNB_LAUNCH_ALONE);
    assert_int_equal(read_ok(ENV("HOME=/", "RANK=general")).n_ranks, 1);
    /* a batch script of Slurm is one process, though its job has more */
    assert_int_equal(read_ok(ENV("SLURM_PROCID=0", "SLURM_NTASKS=4")).how, PNB_LAUNCH_ALONE);
    assert_int_equal(read_ok(ENV("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1")).how,
                     PNB_LAUNCH_ALONE);
}

static void test_torchrun(void **state)
{
    (void)state;
    pnb_launch l = read_ok(ENV("RANK=3", "WORLD_SIZE=8", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=node7",
                               "MASTER_PORT=29500"));
    assert_int_equal(l.how, PNB_LAUNCH_TCP);
    assert_int_equal(l.rank, 3);
    assert_int_equal(l.n_ranks, 8);
    assert_int_equal(l.n_local, 4);
    assert_string_equal(l.address, "node7");
    assert_int_equal(l.port, 29500);
    l = read_ok(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=29500",
                    "TORCHELASTIC_USE_AGENT_STORE=True"));
    assert_int_equal(l.port, 29501);
    assert_int_equal(l.n_local, 1);
}

static void test_mpirun(void **state)
{
    (void)state;
    const char *const *mpirun = ENV("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4",
                                    "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_RANK=1");
    if (pnb__mpi_is_built()) {
        pnb_launch l = read_ok(mpirun);
        assert_int_equal(l.how, PNB_LAUNCH_MPI);
        assert_int_equal(l.rank, 1);
        assert_int_equal(l.n_local, 2);
    } else {
        assert_refused(mpirun, "libopenmpi-dev");
    }
    /* whoever says where rank 0 is gets sockets */
    assert_int_equal(read_ok(ENV("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4",
                                 "MASTER_ADDR=a", "MASTER_PORT=1"))
                         .how,
                     PNB_LAUNCH_TCP);
}

static void test_srun(void **state)
{
    (void)state;
    pnb_launch l = read_ok(ENV("SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=6", "SLURM_JOB_ID=41234",
                               "SLURM_STEP_NODELIST=gpu[07-12,20],x1"));
    assert_int_equal(l.how, PNB_LAUNCH_TCP);
    assert_int_equal(l.rank, 5);
    assert_string_equal(l.address, "gpu07");
    assert_int_equal(l.port, 21234);
    l = read_ok(ENV("SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=6", "SLURM_JOB_ID=1",
                    "SLURM_STEP_NODELIST=a,b"));
    assert_string_equal(l.address, "a");
    if (pnb__mpi_is_built())
        assert_int_equal(
            read_ok(ENV("SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=6", "PMIX_RANK=5")).how,
            PNB_LAUNCH_MPI);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused(ENV("RANK=0", "WORLD_SIZE=2"), "MASTER_ADDR is not");
    assert_refused(ENV("RANK=0", "MASTER_ADDR=a"), "WORLD_SIZE is not");
    assert_refused(ENV("WORLD_SIZE=2", "MASTER_ADDR=a"), "RANK is not");
    assert_refused(ENV("RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"), "RANK is 2");
    assert_refused(ENV("RANK=-1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"), "RANK is -1");
    assert_refused(ENV("RANK=0", "WORLD_SIZE=0", "MASTER_ADDR=a"), "WORLD_SIZE is 0");
    assert_refused(ENV("RANK=0", "WORLD_SIZE=2x", "MASTER_ADDR=a"), "WORLD_SIZE is 2x");
    assert_refused(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a"), "MASTER_PORT is not set");
    assert_refused(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=", "MASTER_PORT=1"), "MASTER_ADDR");
    assert_refused(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=0"), "MASTER_PORT");
    assert_refused(ENV("OMPI_COMM_WORLD_RANK=0"), "OMPI_COMM_WORLD_SIZE is not set");
    assert_refused(ENV("SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID=1"), "NODELIST");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),   cmocka_unit_test(test_torchrun),
        cmocka_unit_test(test_mpirun),  cmocka_unit_test(test_srun),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
