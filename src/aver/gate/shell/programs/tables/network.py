"""Programs that talk to other machines."""

from __future__ import annotations

TABLE = r"""
curl :: -O!write (-f -s -S -L -k -i -I -v -g -n -N -J -R -q -Z -0 -1 -2 -3 -4 -6 -a -j -l -p -B -M -#) -o=write \
  -D=write -c=write -b=raw -w=writeout -m= -y= -Y= -z= -t= -H=header -A=header -e=header -r= -C= -x=send -U=header \
  -u=header -E=secretfile -P= -Q= -h? -d=body -F=form -T=upload -X=method -K=config --url=url --data=body \
  --data-ascii=body --data-binary=body --data-raw=raw --data-urlencode=body --json=body --form=form \
  --form-string=raw --upload-file=upload --request=method --config=config --output=write --output-dir=write \
  --dump-header=write --cookie-jar=write --cookie=raw --write-out=writeout --max-time= --connect-timeout= --retry= \
  --retry-delay= --retry-max-time= --header=header --user-agent=header --referer=header --range= --continue-at= \
  --proxy=send --preproxy=send --proxy-user= --user=header --oauth2-bearer=header --cert=secretfile --key=secretfile \
  --cacert=read --capath=read --crlfile=read --ciphers= --tls-max= --interface= --resolve=!egress,?unknown-target \
  --connect-to=!egress,?unknown-target --dns-servers=send --doh-url=send --unix-socket=socket \
  --abstract-unix-socket=socket --limit-rate= --max-redirs= --max-filesize= --noproxy= --proto= --proto-default= \
  --netrc-file=secretfile --trace=write --trace-ascii=write --stderr=write --etag-save=write --etag-compare=read \
  --hsts=write --alt-svc=write --libcurl=write --parallel-max= --variable=raw --expand-data=raw --expand-url=url \
  --url-query=raw --mail-from= --mail-rcpt=raw --get -G (--fail --fail-with-body --silent --show-error --location \
  --location-trusted --insecure --include --head --verbose --globoff --netrc --no-buffer) --remote-name!write \
  --remote-name-all!write (--remote-header-name --compressed --http1.1 --http2 --http3 --ipv4 --ipv6 --progress-bar \
  --no-progress-meter --retry-all-errors --retry-connrefused --create-dirs --parallel --tlsv1.2 --tlsv1.3 --ssl-reqd \
  --tcp-nodelay --path-as-is --raw --anyauth --basic --digest --next --create-file-mode= --version) strict *url
wget :: (-q -v -d -c -N -r -k -p -m -x -S -E -H -L -4 -6 -F -K -b -h -V) -o=write -a=write -O=write -P=write -i=read \
  -t= -T= -w= -Q= -l= -A= -R= -D= -I= -X= -U= -B= -e=config --output-file=write --append-output=write \
  --output-document=write --directory-prefix=write --input-file=read --tries= --timeout= --wait= --header=header \
  --user-agent=header --referer=header --user= --password= --http-user= --http-password= --post-data=raw \
  --post-file=upload --body-data=raw --body-file=upload --method=method --execute=config --config=config \
  --use-askpass=program --ca-certificate=read --certificate=secretfile --private-key=secretfile --load-cookies=read \
  --save-cookies=write --limit-rate= --level= --accept= --reject= --domains= --warc-file=write --base= \
  --max-redirect= --connect-timeout= --read-timeout= --dns-timeout= --progress? --show-progress (--quiet \
  --no-verbose --verbose --continue --timestamping --recursive --no-parent --mirror --page-requisites \
  --convert-links --spider --server-response --no-check-certificate --content-disposition --no-clobber --inet4-only \
  --inet6-only --background --debug --no-cookies --no-proxy --retry-connrefused --version) strict *url @write
http, https, xh, xhs, curlie :: -o=write --output=write -a= --auth= -A= --session= --verify= --cert=secretfile \
  --proxy=send --timeout= --download!write +network +egress +?unknown-option *skip
aria2c, axel, youtube-dl, yt-dlp, gallery-dl, lftp, ncftp, httrack :: -o=write -d=write --exec=run +network +write \
  +?unknown-program *host
nc, ncat, netcat, nmap, masscan, socat, telnet, ftp, tftp, rlogin, rsh, websocat, wscat, cryptcat, chisel, ngrok, \
  cloudflared, localtunnel, lt, bore, frpc, iodine, dnscat, gost, stunnel, autossh, sshuttle, mosh, tailscale, \
  zerotier-cli :: +network +egress +?unknown-program *host
mail, mailx, mutt, neomutt, sendmail, msmtp, ssmtp, swaks, s-nail :: +network +egress *skip
rclone, gsutil, s3cmd, s5cmd, mc, minio, b2, azcopy, restic, borg, duplicity, unison, syncthing, croc, \
  magic-wormhole, wormhole, transfer, ffsend, rdiff-backup :: +network +egress +?unknown-program *skip
psql, mysql, mariadb, mongo, mongosh, redis-cli, cqlsh, sqlcmd, clickhouse-client, influx, etcdctl, snowsql, bq, \
  mongodump, pg_dump, pg_dumpall, pg_restore, mysqldump, createdb, dropdb, nats, kcat, kafkacat, rabbitmqadmin, \
  ldapsearch, ldapmodify, smbclient, snmpwalk, mosquitto_pub, mosquitto_sub, grpcurl, evans, websocketd :: +network \
  +execute +?code *skip
gh pr {view list diff checks status}, gh issue {view list status}, gh run {list view watch}, gh release {list view}, \
  gh repo {view list}, gh workflow {list view}, gh label list, gh {search status browse}, gh gist {list view}, gh \
  cache list, gh ruleset list, gh project list, gh org list :: -R= --repo= --json= -q= --jq= -L= --limit= -s= \
  --state= -t= --template= +network *skip
gh auth status :: +network *skip
gh auth :: +secret +network
gh repo {clone sync}, gh release download, gh run download, gh gist clone, gh pr checkout, gh issue develop :: \
  -D=write --dir=write -p= -R= --repo= +network +write *skip
gh pr {create comment edit review ready close reopen lock update-branch}, gh issue {create comment edit close reopen \
  lock pin transfer}, gh release edit, gh gist edit, gh label {create edit}, gh workflow {run enable disable}, gh \
  run {rerun cancel}, gh repo {create fork edit rename}, gh variable set, gh project, gh cache delete :: -F=read \
  --body-file=read -b= --body= -t= --title= -R= --repo= -B= -H= -l= -a= -r= -m= +network +egress *skip
gh gist create, gh release {create upload} :: -F=read --notes-file=read -d= -n= -t= -p -w -R= --repo= --desc= \
  --title= --notes= --filename= +network +egress *read
gh pr {merge revert}, gh repo {delete archive}, gh release delete, gh issue delete, gh gist delete, gh label delete, \
  gh run delete :: -R= --repo= -b= -t= +network +egress +git-history *skip
gh {secret ssh-key gpg-key codespace variable} :: +secret +network +egress *skip
gh api :: -X= --method= -f=!egress -F=!egress --field=!egress --raw-field=!egress --input=read -H= -q= --jq= -t= \
  --template= --cache= --hostname= --paginate -i +network +?unknown-target *skip
gh {extension alias config completion attestation copilot} :: +execute +network +?unknown-program
gh :: -R= --repo=
glab :: +network +egress +execute +?unknown-program
aws, gcloud, az, doctl, heroku, vercel, netlify, flyctl, fly, railway, firebase, wrangler, supabase, oci, ibmcloud, \
  linode-cli, hcloud, scw, eksctl, copilot, sam, cdk, pulumi, serverless, sls, amplify, kops, databricks, oc, \
  argocd, flux, istioctl, consul, nomad, packer, vagrant, ansible, ansible-playbook, salt, puppet, chef, fab :: \
  +network +egress +execute +?unknown-program
aws s3 {cp mv sync} :: --exclude= --include= --profile= --region= --acl= --content-type= --storage-class= \
  --endpoint-url=send +network +egress *cloud
aws s3 {ls presign mb website}, gcloud storage ls :: +network *skip
aws s3 {rm rb} :: +network +delete *skip
kubectl {get describe logs top explain version api-resources api-versions cluster-info diff wait events auth \
  rollout} :: -n= --namespace= -o= --output= -l= --selector= -f=read --filename=read -c= --tail= --since= -w \
  --context= +network *skip
kubectl :: -n= --namespace= --context= --kubeconfig=read --cluster= -s= --server=
kubectl {apply create delete edit patch replace scale set label annotate drain cordon uncordon taint expose \
  autoscale} :: -f=read --filename=read -k=read -n= --namespace= -l= -o= -p= --patch-file=read +network +egress \
  +system *skip
kubectl {exec run debug attach cp port-forward proxy plugin config certificate} :: +network +egress +execute \
  +?remote *skip
helm :: +network +execute +?unknown-program
terraform fmt, tofu fmt :: -check:read -diff *edit .write onedash
terraform {validate version show graph output providers}, tofu {validate show} :: *skip .read onedash
terraform {init get}, tofu init :: +network +install +write onedash *skip
terraform plan, tofu plan :: -out=write -var-file=read onedash +network +execute *skip
terraform {apply destroy import state taint console workspace force-unlock}, tofu {apply destroy state} :: +network \
  +egress +system onedash *skip
docker {ps images logs inspect version info stats top port diff history events manifest}, docker image {ls inspect}, \
  docker container {ls inspect logs}, docker volume {ls inspect}, docker network {ls inspect}, docker compose {ps \
  logs config ls images top version}, docker context ls, docker system df, docker buildx ls :: -f= --filter= \
  --format= -n= --tail= --since= --until= *skip
docker {pull search login logout}, docker image pull, docker compose pull :: -u= -p= --platform= +network +install \
  *skip
docker push, docker image push, docker compose push :: +network +egress *skip
docker {build buildx builder bake}, docker image build, docker compose build :: -t= -f=read --file=read --build-arg= \
  --target= --platform= --tag= --cache-from= --cache-to= -o=write --output=write --secret=read --ssh= --progress= \
  --network= +execute +network +?container *read
docker compose :: -f=read --file=read -p= --project-name= --profile= --env-file=read --project-directory=read
docker compose {up run exec start restart create watch} :: +execute +network +?container *skip
docker compose {down stop kill rm pause}, docker {stop kill restart start pause unpause wait rename update}, docker \
  container {stop kill} :: -t= -v!delete --volumes!delete --rmi=!delete +process *skip
docker {rm rmi prune}, docker system prune, docker image {prune rm}, docker container {prune rm}, docker volume {rm \
  prune}, docker network {rm prune}, docker builder prune :: +delete *skip
docker cp :: +?container +read +write *skip
docker {tag save load import export commit context swarm service stack node secret config plugin}, docker volume \
  create, docker network {create connect}, docker image {tag save} :: -o=write --output=write -i=read --input=read \
  +system *skip
docker, podman, nerdctl :: -H=host --host=host -c= --context= --config=read -l= --log-level= -D
minikube, kind, k3d, multipass, lima, limactl, colima, orb, qemu-system-x86_64, VBoxManage, virsh :: +execute \
  +?container
"""
