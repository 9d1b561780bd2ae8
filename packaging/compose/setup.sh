#!/bin/sh
# Makes what three nodes need before their first start, and only what is not there yet: an id, certificates, a password
# for admin, formatted directories. A node gets its own key alone; the authority's stays in the volume `cluster`.
set -eu
umask 077
cluster=${CLUSTER:-/cluster}
nodes=${NODES:-/nodes}
config=${CONFIG:-/etc/quorumlog/server.properties}

mkdir -p "$cluster"
cd "$cluster"
[ -s cluster.id ] || quorumlog storage random-uuid > cluster.id
[ -s admin.password ] || head -c 24 /dev/urandom | base64 > admin.password
cat > admin.properties <<TEXT
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.username=admin
sasl.password=file:$cluster/admin.password
ssl.truststore.location=$cluster/certs/ca.pem
TEXT
if [ ! -s certs/node-3.keystore.pem ]; then
    quorumlog tls init certs --cluster-id "$(cat cluster.id)" --node 1=node1 --node 2=node2 --node 3=node3
fi

for n in 1 2 3; do
    mkdir -p "$nodes/$n/tls"
    cp certs/ca.pem "$nodes/$n/tls/ca.pem"
    cp "certs/node-$n.keystore.pem" "$nodes/$n/tls/keystore.pem"
    # What a node has by its environment, format has by a file: it makes all three at once, with one secret.
    {
        sed "s#=/data/#=$nodes/$n/#" "$config"
        echo "node.id=$n"
        echo "advertised.listeners=CLIENT://node$n:9092,HOST://localhost:${n}9092,INTERNAL://node$n:9093,REPLICATION://node$n:9095"
    } > "node$n.properties"
done
quorumlog storage format -t "$(cat cluster.id)" -c node1.properties -c node2.properties -c node3.properties \
    --ignore-formatted --add-scram 'SCRAM-SHA-512=[name=admin,password=@admin.password]'
