"""Variables and files that steer an MPI and reach it in the container."""

from tests.unit.engine.whole import HOST, IMAGE, MPICH, absent, case, host, image, mpi, unread

LEAKED = host(environment={"OMPI_MCA_btl": "openib", "APPTAINER_NV": ""})
NAMED = {"mca_params": {"btl": "openib"}}

FIRES = {
    "setting-breaks-mpi": [
        case(LEAKED),
        case(given={"OMPI_MCA_unheard_of": "1"}),
        case(host(**NAMED)),
    ],
    "host-settings-leak": [case(LEAKED), case(host(environment={"OMPI_MCA_btl": ""}))],
    "mca-params-file": [case(host(**NAMED))],
}
QUIET = {
    "setting-breaks-mpi": [
        case(),
        case(LEAKED, unset=("OMPI_MCA_btl",)),
        case(LEAKED, absent(IMAGE, "mpi")),
        case(given={"OMPI_MCA_btl_tcp_if_include": "eth0"}),
        case(host(**NAMED), container=("--no-home",)),
        case(unread(HOST, "mca_params"), image(mpi=MPICH)),
    ],
    "host-settings-leak": [case(), case(host(environment={"SLURM_MPI_TYPE": "pmix"}))],
    "mca-params-file": [
        case(),
        case(host(**NAMED), image(mpi=MPICH)),
        case(host(**NAMED), container=("--no-home",)),
    ],
}
UNDECIDED = {
    "setting-breaks-mpi": [case(LEAKED, mpi(components={})), case(unread(HOST, "mca_params"))],
    "mca-params-file": [case(unread(HOST, "mca_params"))],
}
OUTCOMES = {"setting-breaks-mpi": "init-failure"}
