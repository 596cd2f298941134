#!/bin/sh
# Job ctr, mode ps: starts what fleetrun would start. It neither watches nor stops anything.
mkdir -p DIRECTORY/log

# server 0
(
  cd DIRECTORY || exit
  export CPU_NUM=1
  export FLEETRUN_JOB_ID=ctr
  export FLEETRUN_LOCAL_RANK=0
  export FLEETRUN_POD_NAME=PODNAM
  export OMP_NUM_THREADS=1
  export PADDLE_GLOO_FS_PATH=DIRECTORY/log/.gloo-PODNAM
  export PADDLE_GLOO_HTTP_ENDPOINT=127.0.0.1:PORT0
  export PADDLE_GLOO_RENDEZVOUS=3
  export PADDLE_LOG_DIR=DIRECTORY/log
  export PADDLE_NNODES=1
  export PADDLE_PORT=PORT1
  export PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:PORT1
  export PADDLE_ROLE=PSERVER
  export PADDLE_TRAINERS_NUM=1
  export PADDLE_TRAINER_ENDPOINTS=127.0.0.1:PORT2
  export PADDLE_WITH_GLOO=1
  export POD_IP=127.0.0.1
  export POD_NAME=PODNAM
  export TRAINING_ROLE=PSERVER
  exec /bin/echo 'it'\''s' '$HOME'
) </dev/null >>DIRECTORY/log/serverlog.0 2>&1 &

# trainer 0
(
  cd DIRECTORY || exit
  export CPU_NUM=1
  export FLEETRUN_JOB_ID=ctr
  export FLEETRUN_LOCAL_RANK=0
  export FLEETRUN_POD_NAME=PODNAM
  export OMP_NUM_THREADS=1
  export PADDLE_GLOO_FS_PATH=DIRECTORY/log/.gloo-PODNAM
  export PADDLE_GLOO_HTTP_ENDPOINT=127.0.0.1:PORT0
  export PADDLE_GLOO_RENDEZVOUS=3
  export PADDLE_LOG_DIR=DIRECTORY/log
  export PADDLE_NNODES=1
  export PADDLE_PORT=PORT2
  export PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:PORT1
  export PADDLE_ROLE=TRAINER
  export PADDLE_TRAINERS_NUM=1
  export PADDLE_TRAINER_ENDPOINTS=127.0.0.1:PORT2
  export PADDLE_TRAINER_ID=0
  export PADDLE_WITH_GLOO=1
  export POD_IP=127.0.0.1
  export POD_NAME=PODNAM
  export TRAINING_ROLE=TRAINER
  exec /bin/echo 'it'\''s' '$HOME'
) </dev/null >>DIRECTORY/log/workerlog.0 2>&1 &

wait
