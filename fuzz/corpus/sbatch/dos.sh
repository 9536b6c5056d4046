#!/bin/sh
#SBATCH -n 1
