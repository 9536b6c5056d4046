// Every file of the shared data that holds jobs. The figures were computed by a separate script
// with other libraries: rows in the file, jobs kept, their GPU seconds, the clock's zero, the last
// submit.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project_paths.h"
#include "trace/reader.h"

namespace berth {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct DataFile {
  const char* path;
  const char* format;
  std::size_t rows;
  std::size_t jobs;
  double gpu_seconds;
  double zero;
  double last_submit;
};

const std::vector<DataFile>& data_files() {
  static const std::vector<DataFile> kFiles{
      {"philly/philly.csv.gz", "philly", 82247, 82247, 3521082502, 1504521041, 9408690},
      {"philly/philly_sample2k_clamp48h.csv", "philly", 2000, 2000, 83527928, 1503507628, 10388452},
      {"philly/philly_sample1000_raw.csv", "philly", 1000, 1000, 92604709, 1506231695, 7658048},
      {"philly/jobs_attempts.json.gz", "philly", 3034, 3034, 2780499366, 1504521041, 9396823},
      {"helios/venus_gpu_jobs_2020-03_2020-08.csv.gz", "helios", 99707, 99707, 7166737912, 0,
       14414259},
      {"pai2020/pai_tasks_sample_day00-49.csv.gz", "pai", 44543, 44543, 1848837528, 16670, 4303228},
      {"pai2020/hydra_case_5000_all_10_ddl.csv", "hydra", 5000, 5000, 113855078, 0, 0},
      {"itp_elasticflow/195job.csv", "itp", 195, 195, 19763306, 3715485, 172045},
      {"itp_elasticflow/cluster01.csv", "itp", 1595, 1595, 81864453, 1932025, 2916375},
      {"itp_elasticflow/cluster03.csv", "itp", 3011, 3011, 595593077, 911907, 4263429},
      {"itp_elasticflow/cluster05.csv", "itp", 3629, 3629, 51491311, 9940, 5120458},
      {"itp_elasticflow/cluster06.csv", "itp", 2396, 2396, 445963163, 16566, 5151898},
      {"itp_elasticflow/cluster10.csv", "itp", 260, 260, 14484569, 2266647, 2837918},
      {"itp_raw/cluster01.csv", "itp", 1595, 1595, 81864453, 1932025, 2916375},
      {"itp_raw/cluster02.csv", "itp", 5778, 5778, 445494106, 5010, 5161376},
      {"itp_raw/cluster03.csv", "itp", 3011, 3011, 595593077, 911907, 4263429},
      {"itp_raw/cluster04.csv.gz", "itp", 15802, 15802, 2540458386, 5810, 5136817},
      {"itp_raw/cluster05.csv", "itp", 3629, 3629, 51491311, 9940, 5120458},
      {"itp_raw/cluster06.csv", "itp", 2396, 2396, 445963163, 16566, 5151898},
      {"itp_raw/cluster08.csv", "itp", 13047, 13047, 241559936, 3793, 3663365},
      {"itp_raw/cluster10.csv", "itp", 260, 260, 14484569, 2266647, 2837918},
      {"openb2023/openb_pod_list_cpu250.csv", "openb", 9420, 6203, 214603958, 0, 12901761},
      {"openb2023/openb_pod_list_default.csv", "openb", 8152, 6203, 214603958, 0, 12901761},
      {"openb2023/openb_pod_list_gpushare100.csv", "openb", 8152, 5891, 116703534, 0, 12474700},
      {"openb2023/openb_pod_list_gpushare40.csv", "openb", 8152, 6119, 184246403, 0, 12901761},
      {"openb2023/openb_pod_list_gpuspec33.csv", "openb", 8152, 6203, 214603958, 0, 12901761},
      {"alibaba_other/disaggregated_DLRM_trace_2025.csv.gz", "dlrm", 23871, 3202, 263617862, 3973,
       2672172},
      {"muri/simulator/job_type_1.csv", "muri", 992, 992, 420084355, 0, 8166025},
      {"muri/simulator/job_type_2.csv", "muri", 992, 992, 420084355, 0, 8166025},
      {"muri/simulator/job_type_3.csv", "muri", 992, 992, 420084355, 0, 8166025},
      {"muri/simulator/trace1.csv", "muri", 1494, 1494, 1379976364, 0, 10817570},
      {"muri/simulator/trace1_pr.csv", "muri", 1494, 1494, 1379976364, 0, 0},
      {"muri/simulator/trace2.csv", "muri", 5755, 5755, 2966695253, 0, 8572283},
      {"muri/simulator/trace2_pr.csv", "muri", 5755, 5755, 2966695253, 0, 0},
      {"muri/simulator/trace3.csv", "muri", 992, 992, 420084355, 0, 8166025},
      {"muri/simulator/trace3_pr.csv", "muri", 992, 992, 420084355, 0, 0},
      {"muri/testbed/cluster_trace.csv", "muri", 400, 400, 220836929, 0, 2344695},
      {"muri/testbed/results_Muri-L_job.csv", "muri", 400, 400, 220836929, 0, 2344695},
      {"muri/testbed/results_SRSF_job.csv", "muri", 400, 400, 220836929, 0, 2344695},
      {"muri/testbed/results_themis_job.csv", "muri", 400, 400, 220836929, 0, 2344695},
      {"muri/testbed/results_tiresias_job.csv", "muri", 400, 400, 220836929, 0, 2344695},
      {"tiresias/60_job.csv", "tiresias", 60, 60, 26624, 0, 1779},
      {"elasticflow/elasticVpollux_e.csv", "elasticflow", 195, 195, 33457859, 3715485, 172045},
      {"elasticflow/philly_103959.csv", "elasticflow", 876, 876, 154137879, 0, 7910536},
      {"rubick/workloads/workload-base.csv", "rubick", 406, 406, 2223969.017, 0, 47550},
      {"rubick/workloads/workload-mt.csv", "rubick", 406, 406, 2223969.017, 0, 47550},
      {"acme/converted_kalos_trace.csv", "acme", 319, 319, 4047530977.500, 0, 7779474},
      {"pollux/workloads-realistic/workload-1.csv", "sia", 160, 160, 2759356, 107, 27588},
      {"pollux/workloads-realistic/workload-2.csv", "sia", 160, 160, 2463838, 498, 26633},
      {"pollux/workloads-realistic/workload-3.csv", "sia", 160, 160, 1035274, 791, 27948},
      {"pollux/workloads/workload-1.csv", "sia", 160, 160, 2759356, 107, 27588},
      {"pollux/workloads/workload-2.csv", "sia", 160, 160, 2463838, 498, 26633},
      {"pollux/workloads/workload-3.csv", "sia", 160, 160, 1035274, 791, 27948},
      {"pollux/workloads/workload-4.csv", "sia", 160, 160, 2863808, 259, 27472},
      {"pollux/workloads/workload-5.csv", "sia", 160, 160, 2843488, 16, 28739},
      {"pollux/workloads/workload-6.csv", "sia", 160, 160, 2470338, 53, 28136},
      {"sia/workloads/newtrace/workload-1.csv", "sia", 960, 960, 12839520, 487.662, 172116.032},
      {"sia/workloads/newtrace/workload-2.csv", "sia", 960, 960, 15378350, 775.662, 171458.031},
      {"sia/workloads/newtrace/workload-3.csv", "sia", 960, 960, 13089430, 320.662, 172412.032},
      {"sia/workloads/newtrace/workload-4.csv", "sia", 960, 960, 14013490, 697.662, 171908.031},
      {"sia/workloads/newtrace/workload-5.csv", "sia", 960, 960, 13404000, 328.662, 172425.032},
      {"sia/workloads/newtrace/workload-6.csv", "sia", 960, 960, 13871970, 32.662, 172450.032},
      {"sia/workloads/newtrace/workload-7.csv", "sia", 960, 960, 15149940, 163.662, 171530.032},
      {"sia/workloads/philly/workload-1.csv", "sia", 160, 160, 2990420, 107, 27588},
      {"sia/workloads/philly/workload-2.csv", "sia", 160, 160, 2664320, 498, 26633},
      {"sia/workloads/philly/workload-3.csv", "sia", 160, 160, 1262940, 791, 27948},
      {"sia/workloads/philly/workload-4.csv", "sia", 160, 160, 3098270, 259, 27472},
      {"sia/workloads/philly/workload-5.csv", "sia", 160, 160, 3094940, 16, 28739},
      {"sia/workloads/philly/workload-6.csv", "sia", 160, 160, 2653830, 53, 28136},
      {"sia/workloads/saturn/workload-1.csv", "sia", 160, 160, 2526620, 401, 27697},
      {"sia/workloads/saturn/workload-2.csv", "sia", 160, 160, 2578960, 90, 28291},
      {"sia/workloads/saturn/workload-3.csv", "sia", 160, 160, 3585730, 90, 28291},
      {"sia/workloads/saturn/workload-4.csv", "sia", 160, 160, 4088690, 207, 28174},
      {"sia/workloads/saturn/workload-5.csv", "sia", 160, 160, 3005910, 22, 27870},
      {"sia/workloads/saturn/workload-6.csv", "sia", 160, 160, 3090600, 22, 28760},
      {"sia/workloads/saturn/workload-7.csv", "sia", 160, 160, 2548130, 225, 27244},
      {"sia/workloads/scale/rate_10/workload-1.csv", "sia", 80, 80, 1488540, 401, 27684},
      {"sia/workloads/scale/rate_10/workload-2.csv", "sia", 80, 80, 2081350, 101, 28280},
      {"sia/workloads/scale/rate_20/workload-1.csv", "sia", 160, 160, 2522120, 401, 27697},
      {"sia/workloads/scale/rate_20/workload-2.csv", "sia", 160, 160, 2578960, 90, 28291},
      {"sia/workloads/scale/rate_30/workload-1.csv", "sia", 240, 240, 4073170, 101, 27997},
      {"sia/workloads/scale/rate_30/workload-2.csv", "sia", 240, 240, 4699160, 90, 28291},
      {"sia/workloads/scale/rate_40/workload-1.csv", "sia", 320, 320, 4641970, 101, 27997},
      {"sia/workloads/scale/rate_40/workload-2.csv", "sia", 320, 320, 6815520, 90, 28291},
      {"sia/workloads/scale/rate_50/workload-1.csv", "sia", 400, 400, 7709750, 90, 28692},
      {"sia/workloads/scale/rate_50/workload-2.csv", "sia", 400, 400, 7723920, 90, 28692},
      {"sia/workloads/scale/scale_2x/workload-1.csv", "sia", 320, 320, 5053240, 401, 27697},
      {"sia/workloads/scale/scale_32x/workload-1.csv", "sia", 5120, 5120, 80851840, 401, 27697},
      {"sia/workloads/scale/scale_8x/workload-1.csv", "sia", 1280, 1280, 20212960, 401, 27697},
      {"gavel/msr/seed=0/0e4a51.trace", "gavel", 1181, 1181, 648702864.498, 0, 7363956},
      {"gavel/msr/seed=0/103959.trace", "gavel", 986, 986, 214762760.205, 0, 7910536},
      {"gavel/msr/seed=0/11cb48.trace", "gavel", 2000, 2000, 310518451.129, 0, 8799232},
      {"gavel/msr/seed=0/23dbec.trace", "gavel", 9, 9, 925216.663, 0, 188011},
      {"gavel/msr/seed=0/2869ce.trace", "gavel", 533, 533, 485324941.875, 0, 8141054},
      {"gavel/msr/seed=0/51b7ef.trace", "gavel", 18, 18, 3720932.921, 0, 3022240},
      {"gavel/msr/seed=0/6214e9.trace", "gavel", 2000, 2000, 766940101.667, 0, 4184082},
      {"gavel/msr/seed=0/795a4c.trace", "gavel", 3, 3, 17927.451, 0, 3362},
      {"gavel/msr/seed=0/7f04ca.trace", "gavel", 972, 972, 1589069089.937, 0, 10817570},
      {"gavel/msr/seed=0/925e2b.trace", "gavel", 4, 4, 3579077.447, 0, 12313},
      {"gavel/msr/seed=0/e13805.trace", "gavel", 607, 607, 510366480.463, 0, 8468723},
      {"gavel/msr/seed=0/ee9e8c.trace", "gavel", 2000, 2000, 1587194352.774, 0, 4508448},
      {"gavel/msr/seed=1/0e4a51.trace", "gavel", 1181, 1181, 649207748.657, 0, 7363956},
      {"gavel/msr/seed=1/103959.trace", "gavel", 986, 986, 224178320.458, 0, 7910536},
      {"gavel/msr/seed=1/2869ce.trace", "gavel", 533, 533, 463015275.450, 0, 8141054},
      {"gavel/physical_cluster/artifact_evaluation.trace", "gavel", 15, 15, 22862.301, 0, 0},
      {"gavel/physical_cluster/debug.trace", "gavel", 14, 14, 188594.036, 0, 0},
      {"gavel/physical_cluster/debug_v2.trace", "gavel", 14, 14, 115082.027, 0, 0},
      {"gavel/physical_cluster/highmem_test.trace", "gavel", 8, 8, 1587.217, 0, 0},
      {"gavel/physical_cluster/max_min_fairness.trace", "gavel", 96, 96, 2787791.232, 0, 46317},
      {"gavel/physical_cluster/medium_test.trace", "gavel", 20, 20, 174378.868, 0, 0},
      {"gavel/physical_cluster/small_test.trace", "gavel", 20, 20, 1607.417, 0, 0},
      {"shockwave/120_0.2_5_100_40_25_0-0.5-0.5_0.6-0.3-0.09-0.01_multigpu_dynamic.trace",
       "shockwave", 120, 120, 711371, 0, 5011},
      {"shockwave/220_0.2_5_100_25_4_0-0.5-0.5_0.6-0.3-0.09-0.01_multigpu_dynamic.trace",
       "shockwave", 220, 220, 1453927, 0, 5956},
      {"shockwave/900_0.2_5_100_5_15_0-0.5-0.5_0.6-0.3-0.09-0.01_multigpu_dynamic.trace",
       "shockwave", 900, 900, 5802183, 0, 4400},
      {"synergy/static_100job_6_3_1100.0.csv", "synergy", 100, 100, 13241816, 0, 0.099},
      {"slurm/mit_supercloud_slurm_sample.csv.gz", "sacct", 9628, 2401, 157850868, 1612560915,
       3404196},
      {"slurm/sacct_hb-jobinfo.txt", "sacct", 242, 90, 793454, 1685298075, 28221522},
      {"slurm/sacct_json_clockwork.json", "sacct", 2, 2, 106922, 1680127990, 65489},
      {"swf/hpc2n.swf", "swf", 3170, 3145, 503655194, 0, 4950011},
      {"swf/wagap-2013.swf.gz", "swf", 17900, 17898, 9647254226, 1356996147, 7686036},
  };
  return kFiles;
}

std::string data_path(const std::string& file) {
  return std::string(BERTH_SHARED_DIR) + "/data/" + file;
}

double gpu_seconds_of(const Trace& trace) {
  double sum = 0;
  for (const TraceJob& job : trace.jobs)
    sum += job.gpu_milli == 0 ? 0 : job.gpus * to_seconds(job.duration);
  return sum;
}

class SharedData : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(data_path("README.md")))
      GTEST_SKIP() << "no shared traces at " << data_path("");
  }
};

TEST_F(SharedData, EveryFileGivesItsJobsAndTotals) {
  for (const DataFile& file : data_files()) {
    ReadReport report;
    const auto trace = read_trace(data_path(file.path), {}, &report);
    ASSERT_TRUE(trace) << trace.error().text();
    EXPECT_EQ(trace->format, file.format) << file.path;
    EXPECT_EQ(report.rows, file.rows) << file.path;
    EXPECT_EQ(report.dropped, 0U) << file.path;
    EXPECT_EQ(trace->jobs.size(), file.jobs) << file.path;
    EXPECT_NEAR(gpu_seconds_of(*trace), file.gpu_seconds, 0.002 + file.gpu_seconds * 1e-9)
        << file.path;
    EXPECT_NEAR(trace->zero_seconds + to_seconds(trace->jobs.front().submit), file.zero, 0.001)
        << file.path;
    EXPECT_NEAR(to_seconds(trace->jobs.back().submit - trace->jobs.front().submit),
                file.last_submit, 0.002)
        << file.path;
  }
}

TEST_F(SharedData, NamingTheFormatGivesTheSameJobs) {
  for (const DataFile& file : data_files()) {
    const auto trace = read_trace(data_path(file.path), {.format = file.format});
    ASSERT_TRUE(trace) << trace.error().text();
    EXPECT_EQ(trace->jobs.size(), file.jobs) << file.path;
  }
}

TEST_F(SharedData, ChronusRowsWithoutGpusAreErrorsUnlessSkipped) {
  const std::string path = data_path("chronus/trace_job_Philly_SLO.csv.gz");
  const auto strict = read_trace(path);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().messages.back(), path + ": and 185 more");  // 205 rows, 20 told
  ReadReport report;
  const auto trace = read_trace(path, {.format = "", .skip_invalid = true}, &report);
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_THAT(report.dropped_reasons, testing::ElementsAre("205 rows: num_gpu must be at least 1"));
  EXPECT_EQ(trace->jobs.size(), 30'735U);
  EXPECT_NEAR(gpu_seconds_of(*trace), 1'326'639'300, 1);  // minutes became seconds
  EXPECT_EQ(to_seconds(trace->jobs.front().submit), 60);
  EXPECT_TRUE(trace->jobs.front().deadline.has_value());
}

TEST_F(SharedData, PodListWithoutTimesSaysSo) {
  const auto trace = read_trace(data_path("openb2023/openb_pod_list_multigpu50.csv"));
  ASSERT_FALSE(trace);
  EXPECT_THAT(trace.error().text(), HasSubstr("column creation_time is missing"));
}

TEST_F(SharedData, FilesThatHoldNoJobsAreRefused) {
  for (const char* file :
       {"pai2020/pai_machine_spec.csv", "philly/node_sequence.csv.gz",
        "openb2023/openb_node_list_all_node.csv", "tiresias/cluster_spec.csv",
        "slurm/scontrol_nodes_hb-jobinfo.txt", "gavel/simulation_throughputs.json"}) {
    EXPECT_FALSE(read_trace(data_path(file))) << file;
  }
}

TEST_F(SharedData, LeftOutRowsAreCountedInNotes) {
  const auto openb = read_trace(data_path("openb2023/openb_pod_list_default.csv"));
  ASSERT_TRUE(openb);
  EXPECT_THAT(openb->notes, Contains("left out 1088 rows that ask for no GPU"));
  EXPECT_THAT(openb->notes, Contains("left out 861 rows that never started"));
  const auto sacct = read_trace(data_path("slurm/sacct_hb-jobinfo.txt"));
  ASSERT_TRUE(sacct);
  EXPECT_THAT(sacct->notes, Contains("left out 142 job steps (the job itself is kept)"));
  const auto mit = read_trace(data_path("slurm/mit_supercloud_slurm_sample.csv.gz"));
  ASSERT_TRUE(mit);
  EXPECT_THAT(mit->notes, Contains(HasSubstr("2 rows repeat the id")));
  const auto swf = read_trace(data_path("swf/hpc2n.swf"));
  ASSERT_TRUE(swf);
  EXPECT_THAT(swf->notes, Contains("left out 25 rows that never ran (run time 0)"));
}

TEST_F(SharedData, DetailsOfOneJobSurvive) {
  const auto openb = read_trace(data_path("openb2023/openb_pod_list_gpuspec33.csv"));
  ASSERT_TRUE(openb);
  int fractions = 0;
  int alternatives = 0;
  for (const TraceJob& job : openb->jobs) {
    fractions += job.gpu_milli < 1000 ? 1 : 0;
    alternatives += openb->text(job.gpu_type).find('|') != std::string_view::npos ? 1 : 0;
  }
  EXPECT_GT(fractions, 2000);
  EXPECT_GT(alternatives, 100);
  const auto json = read_trace(data_path("slurm/sacct_json_clockwork.json"));
  ASSERT_TRUE(json);
  EXPECT_EQ(json->jobs[1].status, TraceStatus::Failed);  // NODE_FAIL
  EXPECT_EQ(to_seconds(json->jobs[1].estimate), 1440 * 60);
}

}  // namespace
}  // namespace berth
