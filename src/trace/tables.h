// The tables in which clusters and papers have published their jobs, as data for trace/table.h.
// What each column means and what is assumed stands in docs/formats/traces.md.
#pragma once

#include "trace/table.h"

namespace berth::tables {

extern const TableFormat kNative;  // our own

// Logs of production clusters.
extern const TableFormat kPhilly;        // timestamp, duration, num_gpus, gpu_time, cluster
extern const TableFormat kPhillySample;  // job_id, arrival_time_s, duration_s, gpu_count
extern const TableFormat
    kPhillySampleRaw;                    // job_id, arrival_time, duration, gpu_count, source_trace
extern const TableFormat kHelios;        // the original cluster_log.csv
extern const TableFormat kHeliosSample;  // job_id, arrival_s, service_sec, gpu_count
extern const TableFormat kPaiSample;     // the same columns, ids that begin with "ali-"
extern const TableFormat kPaiTasks;      // pai_task_table with its header
extern const TableFormat kOpenb;         // pod list with times
extern const TableFormat kOpenbAll;      // the same, pods without a GPU too
extern const TableFormat kDlrm;          // disaggregated inference instances
extern const TableFormat kItp;
extern const TableFormat kAcmeKalos;
extern const TableFormat kMitSupercloud;  // Slurm accounting tables as a CSV
extern const TableFormat kSacct;          // sacct -P with its header
extern const TableFormat kSacctSnowman;   // fields joined by U+2603, no header

// Inputs of published schedulers.
extern const TableFormat kMuri;
extern const TableFormat kMuriResults;
extern const TableFormat kTiresias;
extern const TableFormat kChronus;
extern const TableFormat kElasticflow;
extern const TableFormat kRubick;
extern const TableFormat kSia;
extern const TableFormat kHydra;
extern const TableFormat kSynergy;
extern const TableFormat kGavelMsr;   // 7 columns
extern const TableFormat kGavel;      // 10 columns
extern const TableFormat kShockwave;  // 12 columns

}  // namespace berth::tables
