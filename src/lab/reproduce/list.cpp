// Which headlines there are, in the order of the page.
#include <array>

#include "lab/reproduction.h"

namespace berth {

Result<Reproduced> reproduce_sjf_bsbf(const ReproduceOptions& options);
Result<Reproduced> reproduce_gandiva(const ReproduceOptions& options);
Result<Reproduced> reproduce_antman(const ReproduceOptions& options);
Result<Reproduced> reproduce_andreas(const ReproduceOptions& options);
Result<Reproduced> reproduce_muri(const ReproduceOptions& options);
Result<Reproduced> reproduce_optimus(const ReproduceOptions& options);
Result<Reproduced> reproduce_fgd(const ReproduceOptions& options);
Result<Reproduced> reproduce_cpu(const ReproduceOptions& options);
Result<Reproduced> reproduce_locality(const ReproduceOptions& options);
Result<Reproduced> reproduce_oasis(const ReproduceOptions& options);
Result<Reproduced> reproduce_aonline(const ReproduceOptions& options);
Result<Reproduced> reproduce_themis(const ReproduceOptions& options);
Result<Reproduced> reproduce_pollux(const ReproduceOptions& options);
Result<Reproduced> reproduce_chronus(const ReproduceOptions& options);
Result<Reproduced> reproduce_elasticflow(const ReproduceOptions& options);
Result<Reproduced> reproduce_gavel(const ReproduceOptions& options);
Result<Reproduced> reproduce_gandiva_fair(const ReproduceOptions& options);
Result<Reproduced> reproduce_sia(const ReproduceOptions& options);
Result<Reproduced> reproduce_philly(const ReproduceOptions& options);
Result<Reproduced> reproduce_pai(const ReproduceOptions& options);
Result<Reproduced> reproduce_qssf(const ReproduceOptions& options);
Result<Reproduced> reproduce_ces(const ReproduceOptions& options);
Result<Reproduced> reproduce_testbed(const ReproduceOptions& options);
Result<Reproduced> reproduce_shockwave(const ReproduceOptions& options);

namespace {

const std::array kReproductions{
    Reproduction{
        "sjf-bsbf", "wise resource sharing, SJF-BSBF (IWQoS 2024)", {}, reproduce_sjf_bsbf},
    Reproduction{"gandiva", "Gandiva, introspective scheduling (OSDI 2018)", {}, reproduce_gandiva},
    Reproduction{"antman", "AntMan, dynamic scaling (OSDI 2020)", {}, reproduce_antman},
    Reproduction{"andreas",
                 "ANDREAS, energy and tardiness by randomised greedy (FiCloud 2021)",
                 {},
                 reproduce_andreas},
    Reproduction{"muri",
                 "Muri, multi-resource interleaving (SIGCOMM 2022)",
                 {"muri/simulator"},
                 reproduce_muri},
    Reproduction{"optimus", "Optimus, elastic training jobs (EuroSys 2018)", {}, reproduce_optimus},
    Reproduction{
        "fgd", "FGD, fragmentation gradient descent (ATC 2023)", {"openb2023"}, reproduce_fgd},
    Reproduction{"cpu", "performance prediction for CPU cores (poster)", {}, reproduce_cpu},
    Reproduction{
        "locality", "locality and interference in GPU clusters (poster)", {}, reproduce_locality},
    Reproduction{
        "oasis", "OASiS, online primal-dual admission (INFOCOM 2018)", {}, reproduce_oasis},
    Reproduction{
        "aonline", "A_online, weighted completion time (MobiHoc 2020)", {}, reproduce_aonline},
    Reproduction{"themis", "Themis, finish-time fairness (NSDI 2020)", {}, reproduce_themis},
    Reproduction{"pollux",
                 "Pollux, goodput-optimised scheduling (OSDI 2021)",
                 {"pollux/workloads", "pollux/workloads-realistic"},
                 reproduce_pollux},
    Reproduction{"chronus",
                 "Chronus, deadlines by leases (SoCC 2021)",
                 {"chronus/trace_job_Philly_SLO.csv.gz"},
                 reproduce_chronus},
    Reproduction{"elasticflow",
                 "ElasticFlow, deadlines by elastic shares (ASPLOS 2023)",
                 {"itp_elasticflow", "elasticflow/throughputs_A100"},
                 reproduce_elasticflow},
    Reproduction{"gavel",
                 "Gavel, heterogeneity-aware policies (OSDI 2020)",
                 {"gavel/simulation_throughputs.json"},
                 reproduce_gavel},
    Reproduction{"gandiva-fair",
                 "Gandiva_fair, tickets and trading (EuroSys 2020)",
                 {"gavel/simulation_throughputs.json"},
                 reproduce_gandiva_fair},
    Reproduction{"sia",
                 "Sia, goodput on heterogeneous clusters (SOSP 2023)",
                 {"sia/workloads"},
                 reproduce_sia},
    Reproduction{
        "philly",
        "Philly, locality and retries (ATC 2019)",
        {"philly/philly.csv.gz", "philly/jobs_attempts.json.gz", "philly/vc_nodes_qssf.csv"},
        reproduce_philly},
    Reproduction{"pai",
                 "PAI, recurring tasks, reserving and sharing (NSDI 2022)",
                 {"openb2023"},
                 reproduce_pai},
    Reproduction{"qssf",
                 "Helios, quasi-shortest-service-first (SC 2021)",
                 {"helios/venus_gpu_jobs_2020-03_2020-08.csv.gz", "philly/philly.csv.gz",
                  "philly/vc_nodes_qssf.csv"},
                 reproduce_qssf},
    Reproduction{"ces",
                 "Helios, cluster energy saving (SC 2021)",
                 {"helios/venus_gpu_jobs_2020-03_2020-08.csv.gz", "philly/node_sequence.csv.gz"},
                 reproduce_ces},
    Reproduction{"testbed",
                 "64 V100 of the Muri study, replayed (SIGCOMM 2022)",
                 {"muri/testbed"},
                 reproduce_testbed},
    Reproduction{"shockwave",
                 "32 GPUs of the Shockwave study, replayed (NSDI 2023)",
                 {"shockwave"},
                 reproduce_shockwave},
};

}  // namespace

std::span<const Reproduction> reproductions() { return kReproductions; }

}  // namespace berth
